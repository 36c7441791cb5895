"""Errors of storage policies and policy groups."""

from app.core.errors import BadRequest, Conflict, ErrorCode, NotFound


class GroupNotFound(NotFound):
    """No group has this id or name."""

    message = "There is no such policy group."


class GroupUnusable(BadRequest):
    """The group is disabled or has no policy."""

    message = "The policy group is disabled or has no policy."


class PolicyNotFound(NotFound):
    """No policy has this id or name."""

    code = ErrorCode.STORAGE_POLICY_NOT_FOUND
    message = "There is no such storage policy."


class PolicyMissing(NotFound):
    """No policy has the id that is addressed."""

    message = PolicyNotFound.message


class ConnectorUnsupported(BadRequest):
    """The policy is for a kind of storage that the service of the files sets up."""

    code = ErrorCode.STORAGE_UNSUPPORTED_DRIVER
    message = "Only policies for files on this machine are made here."


class PolicyRepeated(BadRequest):
    """A policy was named twice; a group contains each policy at most once."""

    message = "A policy is named twice."


class NameInvalid(BadRequest):
    """The name is empty or too long."""

    message = "A name has 1 to 128 characters."


class DefaultGroupRequired(Conflict):
    """The group is the default, which new accounts need."""

    message = (
        "The default policy group can be neither deleted nor disabled; make another one the "
        "default first."
    )


class OneDefaultRequired(BadRequest):
    """There must be a default group, so another one has to become it."""

    message = "One policy group must be the default; make another one the default instead."


class GroupChanged(Conflict):
    """The group is not as it was when the change was decided on."""

    message = "The policy group has been changed meanwhile."


class GroupAssigned(BadRequest):
    """Accounts or teams are still assigned to the group."""

    message = "The policy group is still assigned."


class TargetNotPositive(BadRequest):
    """The target id is not positive."""

    message = "target_group_id must be greater than 0"


class SameGroup(BadRequest):
    """Source and target are the same group."""

    message = "The source and the target are the same policy group."


class TargetDisabled(BadRequest):
    """The target group is disabled."""

    message = "The target policy group is disabled."


class TargetEmpty(BadRequest):
    """The target group has no policy."""

    message = "The target policy group has no policy."


MIGRATE = (TargetNotPositive, GroupNotFound, SameGroup, TargetDisabled, TargetEmpty)
CREATE_POLICY = (NameInvalid, ConnectorUnsupported)
CREATE_GROUP = (NameInvalid, PolicyNotFound, PolicyRepeated, GroupUnusable)
UPDATE_GROUP = (
    GroupNotFound,
    GroupChanged,
    *CREATE_GROUP,
    DefaultGroupRequired,
    OneDefaultRequired,
    GroupAssigned,
)
DELETE_GROUP = (GroupNotFound, DefaultGroupRequired, GroupAssigned)


GROUP_REFUSED = (GroupNotFound, GroupUnusable)
