"""Errors of what members do with their teams."""

from app.core.access import SwitchedOff
from app.core.errors import RateLimited
from app.team_admin import errors
from app.teams.errors import (
    NotYourTeam,
    TeamManagerRequired,
    TeamNameInvalid,
    TeamNotFound,
    TeamOwnerRequired,
)

READ = (TeamNotFound, NotYourTeam)
MANAGE = (*READ, TeamManagerRequired)
CREATE = (SwitchedOff, TeamNameInvalid, RateLimited)
UPDATE = (*MANAGE, *errors.UPDATE_OWN_TEAM)
ARCHIVE = (*READ, TeamOwnerRequired)
RESTORE = (*MANAGE, *errors.RESTORE_TEAM)
ADD_MEMBER = (*MANAGE, TeamOwnerRequired, *errors.ADD_MEMBER, RateLimited)
SET_MEMBER_ROLE = (*MANAGE, TeamOwnerRequired, *errors.SET_MEMBER_ROLE, RateLimited)
REMOVE_MEMBER = (*MANAGE, TeamOwnerRequired, *errors.CHANGE_MEMBER, RateLimited)
EXPORT = (*MANAGE, *errors.EXPORT_TEAM_AUDIT_LOG)
