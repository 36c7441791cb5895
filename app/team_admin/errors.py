"""Errors of administering teams."""

from app.audit_log.errors import EXPORT_AUDIT_LOG
from app.storage_policies.errors import GROUP_REFUSED
from app.teams.errors import (
    LastTeamOwnerKept,
    TeamArchived,
    TeamArchivedTooLong,
    TeamChanged,
    TeamMemberChanged,
    TeamMemberDisabled,
    TeamMemberExists,
    TeamMemberNotFound,
    TeamNameInvalid,
    TeamNotArchived,
    TeamNotFound,
)
from app.users.errors import UserNotFound

CREATE_TEAM = (UserNotFound, TeamNameInvalid, TeamMemberDisabled, *GROUP_REFUSED)

UPDATE_OWN_TEAM = (TeamArchived, TeamChanged, TeamNameInvalid)

UPDATE_TEAM = (TeamNotFound, *UPDATE_OWN_TEAM, *GROUP_REFUSED)

RESTORE_TEAM = (TeamNotFound, TeamNotArchived, TeamArchivedTooLong)

ADD_MEMBER = (UserNotFound, TeamNotFound, TeamArchived, TeamMemberDisabled, TeamMemberExists)

CHANGE_MEMBER = (TeamNotFound, TeamArchived, TeamMemberNotFound, LastTeamOwnerKept)

SET_MEMBER_ROLE = (*CHANGE_MEMBER, TeamMemberChanged)

EXPORT_TEAM_AUDIT_LOG = (TeamNotFound, *EXPORT_AUDIT_LOG)
