"""Errors of invitations (spec, States; 01 §4 and §8)."""

from app.core.error_codes import ErrorCode
from app.core.errors import BadRequest, NotFound


class InvitationInvalid(BadRequest):
    """No invitation has this token."""

    code = ErrorCode.AUTH_INVITATION_INVALID
    message = "The invitation is not valid."


class InvitationAccepted(BadRequest):
    """The invitation's account has been created."""

    code = ErrorCode.AUTH_INVITATION_ACCEPTED
    message = "The invitation has already been accepted."


class InvitationExpired(BadRequest):
    """The invitation has expired."""

    code = ErrorCode.AUTH_INVITATION_EXPIRED
    message = "The invitation has expired."


class InvitationRevoked(BadRequest):
    """The invitation was revoked, or replaced by a newer one for the same address."""

    code = ErrorCode.AUTH_INVITATION_REVOKED
    message = "The invitation has been revoked."


class InvitationNotFound(NotFound):
    """No invitation has this id."""

    message = "There is no such invitation."
