"""The signed-in caller, the tokens of a session, and why access is refused."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from app.core.client import Client
from app.core.errors import ErrorCode, Forbidden, PreconditionFailed, Unauthenticated

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


class SessionUserMismatch(Forbidden):
    """The session belongs to another account than the request means."""

    code = ErrorCode.AUTH_SESSION_USER_MISMATCH
    message = "The session belongs to another user."


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


class AdminNetworkRequired(Forbidden):
    """The request does not come from a network that GATEHOUSE_ADMIN_NETWORKS lists."""

    message = "Administration is not open to this network."


class SwitchedOff(Forbidden):
    """The settings do not let people do this by themselves."""

    message = "This is switched off here; ask an administrator."


class ConfirmationRequired(PreconditionFailed):
    """The session was not confirmed recently enough for what was asked."""

    code = ErrorCode.PRECONDITION_FAILED
    message = "Confirm that it is you, then try again."


@dataclass(frozen=True)
class TokenPair:
    """The tokens issued for a session, with both lifetimes in seconds.

    `is_short`: its cookies end with the browser's window. `device` is what the browser is known by
    from now on; None leaves that as it is.
    """

    access_token: str = field(repr=False)
    access_seconds: int
    refresh_token: str = field(repr=False)
    refresh_seconds: int
    is_short: bool = False
    device: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Principal:
    """A signed-in account, as loaded by the single read of the access check.

    `confirmed_at` is when its owner last signed in or confirmed to be present in this session.
    """

    account: "Account"
    session_id: str
    token_expires_at: int
    is_limited_to_password_change: bool
    confirmed_at: datetime

    @property
    def user_id(self) -> int:
        """The account's id."""
        return self.account.id


@dataclass(frozen=True)
class Operator:
    """Who changes something: an administrator by a request, or whoever is at the command line.

    With `is_team_member`, it is a member who manages a team. `require_still_allowed` is run in the
    transaction of every change, after its locks: somebody who lost the role while the request
    waited can change nothing.
    """

    principal: Principal | None = None
    client: Client | None = None
    require_still_allowed: Callable[[Session, Principal], None] | None = None
    is_team_member: bool = False

    @property
    def user_id(self) -> int | None:
        """The account's id; None for the command line."""
        return self.principal.user_id if self.principal else None

    def recheck(self, session: Session) -> None:
        """Refuse somebody who may no longer do this.

        Raises: TokenInvalid, AccountDisabled, AdminRequired; of a team's member, what its roles do.
        """
        if self.principal and self.require_still_allowed:
            self.require_still_allowed(session, self.principal)

    def rechecked(self, session: Session) -> "Operator":
        """Recheck now and not again, for a change that may end the operator's own session.

        Raises: as `recheck`.
        """
        self.recheck(session)
        return replace(self, require_still_allowed=None)


COMMAND_LINE = Operator()
