"""The signed-in caller, the tokens of a session, and why access is refused."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.core.errors import ErrorCode, Forbidden, Unauthenticated

if TYPE_CHECKING:  # at run time, core must not import an area
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
    """The token was not issued by this service, or its session has ended."""

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
    """The tokens issued for a session, with both lifetimes in seconds."""

    access_token: str = field(repr=False)
    access_seconds: int
    refresh_token: str = field(repr=False)
    refresh_seconds: int


@dataclass(frozen=True, slots=True)
class Principal:
    """A signed-in account, as loaded by the single read of the access check."""

    account: "Account"
    session_id: str
    token_expires_at: int
    is_limited_to_password_change: bool

    @property
    def user_id(self) -> int:
        """The account's id."""
        return self.account.id
