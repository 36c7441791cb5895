"""Errors of a login, and of removing the last way to sign in (spec 01 §4; decisions A3, A4)."""

from app.core.error_codes import ErrorCode
from app.core.errors import Conflict, Forbidden, Unauthenticated


class CredentialsFailed(Unauthenticated):
    """Unknown account, no usable password or a wrong one; the answer never says which."""

    code = ErrorCode.AUTH_CREDENTIALS_FAILED
    message = "The identifier or the password is not correct."


class PasswordLoginDisabled(Forbidden):
    """Passwords are switched off for this installation."""

    code = ErrorCode.AUTH_PASSWORD_LOGIN_DISABLED
    message = "Password login is disabled."


class LastWayIn(Conflict):
    """Nobody could sign in to the account any more (decision A26)."""

    message = "This is the only way to sign in to the account."
