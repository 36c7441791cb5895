"""Errors of tokens from mails (spec 01 §4)."""

from app.core.error_codes import ErrorCode
from app.core.errors import BadRequest, Gone


class ContactVerificationInvalid(BadRequest):
    """The token is unknown, used, superseded, for another purpose, or its account has changed."""

    code = ErrorCode.AUTH_CONTACT_VERIFICATION_INVALID
    message = "The link is not valid. Ask for a new one."


class ContactVerificationExpired(Gone):
    """The token has expired."""

    code = ErrorCode.AUTH_CONTACT_VERIFICATION_EXPIRED
    message = "The link has expired. Ask for a new one."


class EmailUnchanged(BadRequest):
    """The new address is the one the account already has."""

    message = "This is already the account's e-mail address."


class NoPendingChange(BadRequest):
    """No e-mail change is pending: none was requested, or it has been completed or dropped."""

    message = "No change of the e-mail address is pending."
