"""Errors of a registration."""

from app.core.errors import ErrorCode, Forbidden
from app.login.errors import PasswordLoginDisabled
from app.setup.errors import SystemNotInitialized
from app.users.errors import ADDRESS_REFUSED, NAMES_TAKEN, NEW_ACCOUNT, UsernameReserved


class RegistrationDisabled(Forbidden):
    """Nobody may register without an invitation."""

    code = ErrorCode.AUTH_REGISTRATION_DISABLED
    message = "Registration is closed."


REGISTER = (
    SystemNotInitialized,
    PasswordLoginDisabled,
    RegistrationDisabled,
    *ADDRESS_REFUSED,
    *NEW_ACCOUNT,
    UsernameReserved,
    *NAMES_TAKEN,
)
RESEND = (PasswordLoginDisabled,)
