"""Errors of tokens from mails."""

from app.core.access import (
    AccountDisabled,
    PendingActivation,
)
from app.core.errors import BadRequest, ErrorCode, Gone
from app.users.errors import ADDRESS_REFUSED, EmailBlocked, EmailExists, EmailInvalid


class ContactVerificationInvalid(BadRequest):
    """The token is unknown, used, replaced, for something else, or its account has changed."""

    code = ErrorCode.AUTH_CONTACT_VERIFICATION_INVALID
    message = "The link is not valid. Ask for a new one."


class ContactVerificationExpired(Gone):
    """The token has expired."""

    code = ErrorCode.AUTH_CONTACT_VERIFICATION_EXPIRED
    message = "The link has expired. Ask for a new one."


class EmailUnchanged(BadRequest):
    """The new address is the account's own."""

    message = "This is already the account's e-mail address."


class EmailVerified(BadRequest):
    """The address has been confirmed."""

    message = "This e-mail address is confirmed already."


class NoPendingChange(BadRequest):
    """No change of the address was requested, or it has ended."""

    message = "No change of the e-mail address is pending."


SEND_CONFIRMATION = (EmailVerified, EmailBlocked)
CONFIRM = (AccountDisabled, EmailExists)
RESEND_CHANGE = (NoPendingChange, PendingActivation, EmailBlocked, EmailExists)
REQUEST_CHANGE = (EmailInvalid, PendingActivation, EmailUnchanged, *ADDRESS_REFUSED, EmailExists)
