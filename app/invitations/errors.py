"""Errors of invitations."""

from app.core.errors import BadRequest, ErrorCode, NotFound
from app.login.errors import PasswordLoginDisabled
from app.setup.errors import SystemNotInitialized
from app.users.errors import (
    ADDRESS_REFUSED,
    NAMES_TAKEN,
    NEW_PASSWORD,
    EmailExists,
    EmailInvalid,
    UsernameInvalid,
    UsernameReserved,
)


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


CLOSED = (InvitationInvalid, InvitationAccepted, InvitationExpired, InvitationRevoked)
CREATE = (EmailInvalid, *ADDRESS_REFUSED, EmailExists)
REVOKE = (InvitationNotFound, InvitationAccepted, InvitationExpired, InvitationRevoked)
RESEND = (InvitationNotFound, InvitationAccepted, *ADDRESS_REFUSED, EmailExists)
ACCEPT = (
    PasswordLoginDisabled,
    SystemNotInitialized,
    *CLOSED,
    *ADDRESS_REFUSED,
    *NAMES_TAKEN,
    *NEW_PASSWORD,
    UsernameInvalid,
    UsernameReserved,
)
