"""Errors of teams."""

from app.core.errors import BadRequest, Conflict, ErrorCode, Forbidden, NotFound


class TeamNotFound(NotFound):
    """No team has this id or name."""

    message = "There is no such team."


class TeamNameInvalid(BadRequest):
    """The name is empty or too long."""

    message = "A team's name has 1 to 128 characters."


class TeamArchived(Conflict):
    """The team is archived and cannot be changed."""

    message = "The team is archived."


class TeamNotArchived(Conflict):
    """The team is in use, so there is nothing to restore."""

    message = "The team is not archived."


class TeamChanged(Conflict):
    """The team is not as it was when the change was decided on."""

    message = "The team has been changed meanwhile."


class TeamMemberChanged(Conflict):
    """The membership is not as it was when the change was decided on."""

    message = "The membership has been changed meanwhile."


class TeamArchivedTooLong(Conflict):
    """The team is about to be deleted."""

    message = "The team was archived too long ago and is about to be deleted."


class TeamMemberExists(BadRequest):
    """The account is already a member."""

    code = ErrorCode.TEAM_MEMBER_EXISTS
    message = "The account is already a member of the team."


class TeamMemberDisabled(BadRequest):
    """The account is disabled and cannot join a team."""

    message = "The account is disabled."


class TeamNotMember(Forbidden):
    """The account is not a member."""

    code = ErrorCode.TEAM_NOT_MEMBER
    message = "The account is not a member of the team."


class TeamManagerRequired(Forbidden):
    """Only owners and administrators of the team may do this."""

    code = ErrorCode.TEAM_ADMIN_OR_OWNER_REQUIRED
    message = "Only an owner or an administrator of the team may do this."


class TeamOwnerRequired(Forbidden):
    """Only owners of the team may do this."""

    code = ErrorCode.TEAM_OWNER_REQUIRED
    message = "Only an owner of the team may do this."


class NotYourTeam(Forbidden):
    """The caller is not a member of the team, or not any more."""

    code = ErrorCode.TEAM_NOT_MEMBER
    message = "You are not a member of this team."


class TeamMemberNotFound(NotFound):
    """The account is not a member, where a member is what is addressed."""

    message = "The team has no such member."


class LastTeamOwner(BadRequest):
    """The change would leave the team without an owner."""

    message = "This is the last owner of the team."


class LastTeamOwnerKept(Conflict):
    """The team needs this owner, so the member is not changed."""

    message = LastTeamOwner.message


class TeamOwnerUndeletable(Conflict):
    """Deleting the account would leave a team without an owner."""

    message = "The account is the last owner of a team; add another owner or archive the team."
