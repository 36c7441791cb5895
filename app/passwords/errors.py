"""Errors of changing and resetting a password."""

from app.contact_verification.errors import ContactVerificationExpired, ContactVerificationInvalid
from app.core.access import AccountDisabled
from app.core.errors import BadRequest
from app.login.errors import CredentialsFailed, PasswordLoginDisabled
from app.users.errors import NEW_PASSWORD, EmailInvalid


class PasswordUnchanged(BadRequest):
    """The new password is the current one."""

    message = "The new password must differ from the current one."


CHANGE = (CredentialsFailed, PasswordUnchanged, *NEW_PASSWORD)
REQUEST_RESET = (PasswordLoginDisabled, EmailInvalid)
CONFIRM_RESET = (
    PasswordLoginDisabled,
    *NEW_PASSWORD,
    ContactVerificationInvalid,
    ContactVerificationExpired,
    AccountDisabled,
)
