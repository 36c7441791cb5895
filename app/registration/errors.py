"""Errors of a registration (spec 01 §4)."""

from app.core.error_codes import ErrorCode
from app.core.errors import Forbidden


class RegistrationDisabled(Forbidden):
    """Nobody may register without an invitation."""

    code = ErrorCode.AUTH_REGISTRATION_DISABLED
    message = "Registration is closed."
