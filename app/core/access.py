"""Who is signed in and what they hold, and why somebody is not (spec 02 §3)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.core.error_codes import ErrorCode
from app.core.errors import Forbidden, Unauthenticated

if TYPE_CHECKING:  # when it runs, this module knows no area
    from app.users.models import Account


class TokenMissing(Unauthenticated):
    """No token was presented."""

    code = ErrorCode.AUTH_TOKEN_MISSING
    message = "missing token"


class TokenExpired(Unauthenticated):
    """The token has expired."""

    code = ErrorCode.AUTH_TOKEN_EXPIRED
    message = "token expired"


class TokenInvalid(Unauthenticated):
    """The token is not ours, or its session has ended."""

    code = ErrorCode.AUTH_TOKEN_INVALID
    message = "invalid token"


class AccountDisabled(Forbidden):
    """The account was disabled by an administrator."""

    code = ErrorCode.AUTH_ACCOUNT_DISABLED
    message = "The account is disabled."


class PasswordChangeRequired(Forbidden):
    """Nothing else is open until the password is changed."""

    code = ErrorCode.AUTH_PASSWORD_CHANGE_REQUIRED
    message = "The password must be changed first."


class AdminRequired(Forbidden):
    """Only administrators may do this."""

    code = ErrorCode.AUTH_ADMIN_REQUIRED
    message = "admin role required"


@dataclass(frozen=True)
class TokenPair:
    """What a session's owner is given, with the lives of both tokens in seconds."""

    access_token: str = field(repr=False)
    access_seconds: int
    refresh_token: str = field(repr=False)
    refresh_seconds: int


@dataclass(frozen=True, slots=True)
class Principal:
    """A signed-in account, as the one read of the access check found it (decision A7)."""

    account: "Account"
    session_id: str
    token_expires_at: int
    is_limited_to_password_change: bool

    @property
    def user_id(self) -> int:
        """The account's id."""
        return self.account.id
