"""Refusals of a login (spec 01 §4; decisions A3, A4)."""

from app.core.error_codes import ErrorCode
from app.core.errors import Forbidden, Unauthenticated
from app.users.errors import PendingActivation

__all__ = ["CredentialsFailed", "PasswordLoginDisabled", "PendingActivation"]


class CredentialsFailed(Unauthenticated):
    """Unknown account, no usable password or a wrong one: never told which."""

    code = ErrorCode.AUTH_CREDENTIALS_FAILED
    message = "The identifier or the password is not correct."


class PasswordLoginDisabled(Forbidden):
    """Passwords are switched off for this installation."""

    code = ErrorCode.AUTH_PASSWORD_LOGIN_DISABLED
    message = "Password login is disabled."
