"""The authenticated caller, the tokens of a session, and why access is refused."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
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


class PendingActivation(Forbidden):
    """The account has not been activated yet."""

    code = ErrorCode.AUTH_PENDING_ACTIVATION
    message = "The account is not activated yet."


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


class ClosedToTokens(Forbidden):
    """The route is for people who are signed in, and for no program with an access token."""

    message = "A token cannot do this."


class ScopeMissing(Forbidden):
    """The access token has not the scope that opens the route."""

    def __init__(self, scope: "Scope") -> None:
        super().__init__(f"This needs a token with the scope {scope}.")

    @classmethod
    def example(cls) -> str:
        """Return a message as callers get it, for the API description."""
        return cls(Scope.PROFILE_READ).public_message


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


# When a session was confirmed whose owner has not been asked for all that a sign-in takes.
NEVER = datetime.fromtimestamp(0, UTC)

# By it the access token of a program is told from that of a session.
PROGRAM_TOKEN_PREFIX = "gth_"


class Scope(StrEnum):
    """What a program with an access token may do.

    What `files` and `files:read` mean is the file service's.
    """

    PROFILE_READ = "profile:read"
    PROFILE = "profile"
    EVENTS = "events"
    FILES_READ = "files:read"
    FILES = "files"
    ADMIN_READ = "admin:read"
    ADMIN = "admin"

    def opens(self, needed: "Scope") -> bool:
        """Return whether it covers `needed`: writing includes reading."""
        return needed in (self, f"{self}:read")


ADMIN_SCOPES = frozenset({Scope.ADMIN_READ, Scope.ADMIN})


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated account, as loaded by the single read of the access check.

    Either a `Principal` or a `Program`.
    """

    account: "Account"

    @property
    def user_id(self) -> int:
        """The account's id."""
        return self.account.id


@dataclass(frozen=True, slots=True)
class Principal(Caller):
    """An account that is signed in.

    `confirmed_at` is when its owner last signed in or confirmed to be present in this session.
    """

    session_id: str
    token_expires_at: int
    is_limited_to_password_change: bool
    confirmed_at: datetime


@dataclass(frozen=True, slots=True)
class ProgramToken:
    """An access token as its owner sees it; `expires_at` is None for one that never expires."""

    id: int
    name: str
    scopes: tuple[Scope, ...]
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Program(Caller):
    """A program to which an account's owner gave an access token."""

    token: ProgramToken


@dataclass(frozen=True)
class Operator:
    """Who changes something: an administrator by a request, or whoever is at the command line.

    `principal` is a `Program` if the administrator's request came with an access token. With
    `is_team_member`, it is a member who manages a team. `require_still_allowed` is run in the
    transaction of every change, after its locks: somebody who lost the role while the request
    waited can change nothing.
    """

    principal: Principal | Program | None = None
    client: Client | None = None
    require_still_allowed: Callable[[Session], None] | None = None
    is_team_member: bool = False

    @property
    def user_id(self) -> int | None:
        """The account's id; None for the command line."""
        return self.principal.user_id if self.principal else None

    def recheck(self, session: Session) -> None:
        """Refuse somebody who may no longer do this.

        Raises: TokenInvalid, AccountDisabled, AdminRequired; of a program also PendingActivation,
        PasswordChangeRequired; of a team's member, what its roles do.
        """
        if self.require_still_allowed:
            self.require_still_allowed(session)

    def rechecked(self, session: Session) -> "Operator":
        """Recheck now and not again, for a change that may end the operator's own session.

        Raises: as `recheck`.
        """
        self.recheck(session)
        return replace(self, require_still_allowed=None)


COMMAND_LINE = Operator()
