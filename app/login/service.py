"""Password login, and `complete_login()`, which alone decides what a proven first factor grants."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import TokenPair
from app.core.client import Client
from app.core.database.database import DATABASE_ERRORS
from app.core.database.failures import reason_of
from app.core.runtime import Runtime
from app.login import sign_in_methods
from app.login.errors import CredentialsFailed
from app.login.mfa_login import FirstFactorKind, open_login
from app.mfa import service as mfa
from app.mfa.models import MfaMethod
from app.sessions import service as sessions
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account

log = logging.getLogger(__name__)


class LoginStatus(StrEnum):
    """The outcome of a login step."""

    AUTHENTICATED = "authenticated"
    PASSWORD_CHANGE_REQUIRED = "password_change_required"
    MFA_REQUIRED = "mfa_required"


@dataclass(frozen=True)
class LoginOutcome:
    """A new session: its token pair, and whether it may only change the password."""

    pair: TokenPair
    is_limited: bool

    @property
    def status(self) -> LoginStatus:
        """Return the status to report to the client."""
        return (
            LoginStatus.PASSWORD_CHANGE_REQUIRED if self.is_limited else LoginStatus.AUTHENTICATED
        )


@dataclass(frozen=True)
class MfaRequired:
    """No session yet: a second factor is required within `expires_in` seconds."""

    flow_token: str = field(repr=False)
    expires_in: int
    methods: tuple[MfaMethod, ...]

    status = LoginStatus.MFA_REQUIRED
    pair = None


@dataclass(frozen=True)
class VerifiedPassword:
    """A correct password, whose check was counted as an attempt beforehand.

    `attempts_key` is what attempts are counted under, `attempt` identifies this one. `new_hash`
    replaces `old_hash` if that was made with outdated parameters; None if it is up to date.
    """

    attempts_key: str = field(repr=False)
    attempt: str
    old_hash: str = field(repr=False)
    new_hash: str | None = field(repr=False)


@dataclass(frozen=True)
class FirstFactor:
    """A proven first factor.

    `kind` decides whether a second one is required. `action`, the entity and `details` go into the
    audit log. `password` is set if one was entered. `consume` makes the proof single-use, for a
    factor that needs no second: it runs in the transaction that opens the session.
    """

    kind: FirstFactorKind
    action: Action
    entity_type: EntityType
    entity_name: str
    password: VerifiedPassword | None = None
    entity_id: int | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    consume: Callable[[Session], None] | None = None


def log_in(
    rt: Runtime, *, identifier: str, password: str, client: Client
) -> LoginOutcome | MfaRequired:
    """Check identifier and password.

    Raises: PasswordLoginDisabled before any lookup; RateLimited; CredentialsFailed;
    AccountDisabled and PendingActivation for the right password only.
    """
    sign_in_methods.require_password_login(rt)
    account, verified = check_password(rt, identifier, password, client)
    factor = FirstFactor(
        kind=FirstFactorKind.PASSWORD,
        action=Action.USER_LOGIN,
        entity_type=EntityType.AUTH_SESSION,
        entity_name=identifier,
        password=verified,
    )
    return complete_login(rt, account, factor, client)


def check_password(
    rt: Runtime, identifier: str, password: str, client: Client
) -> tuple[Account, VerifiedPassword]:
    """Return the account of identifier and password, as it was read for the check.

    The attempt counts as failed until `complete_login` or `refund_on_failure` refunds it.
    Raises: RateLimited; CredentialsFailed, after the same work whether or not the account exists.
    """
    who = identifiers.identifier(identifier)
    found = users_queries.find_credentials(rt.database, who)
    account, stored_hash = found or (None, None)
    if account is None:
        attempts_key = identifiers.attempts_key_for_unknown(who)
    else:
        attempts_key = identifiers.attempts_key(account.id)
    user_id = None if account is None else account.id
    with rt.limits.attempts.counted_attempt(attempts_key, client.network, user_id) as attempt:
        verdict = rt.passwords.check(password, stored_hash)
    if account is None or stored_hash is None or not verdict.matches:
        raise CredentialsFailed
    return account, VerifiedPassword(attempts_key, attempt, stored_hash, verdict.new_hash)


def complete_login(
    rt: Runtime, account: Account, factor: FirstFactor, client: Client
) -> LoginOutcome | MfaRequired:
    """Turn a proven first factor into a session, or make the login wait for a second factor.

    Every way to sign in goes through here. `account` is as read when the factor was proven.
    Raises: AccountDisabled, PendingActivation; CredentialsFailed if the account has changed since,
    or the factor was consumed meanwhile.
    """
    with refund_on_failure(rt, factor.password, client):
        users.require_sign_in_allowed(account)
        methods = mfa.methods(rt, account) if factor.kind.needs_second else ()
        if methods:
            return _wait_for_second(rt, account, factor, methods, client)
        outcome = _open_session(rt, account, factor, client)
    if (verified := factor.password) is not None:
        rt.limits.attempts.clear(verified.attempts_key, client.network, verified.attempt)
        _renew_hash(rt, account, verified)
    return outcome


def _open_session(
    rt: Runtime, account: Account, factor: FirstFactor, client: Client
) -> LoginOutcome:
    """Open the session of a login that needs no second factor.

    Raises: CredentialsFailed if the account changed, or the factor was consumed, meanwhile.
    """
    is_limited = sessions.is_password_change_forced(rt, account)
    details = {"mfa_required": False} if factor.kind.needs_second else {}
    details["password_change_required"] = is_limited
    event = _event(account, factor, client, details)
    pair = sessions.open_if_unchanged(
        rt, account, client, is_limited=is_limited, event=event, consume=factor.consume
    )
    if pair is None:
        raise CredentialsFailed
    return LoginOutcome(pair, is_limited)


def _renew_hash(rt: Runtime, account: Account, verified: VerifiedPassword) -> None:
    """Replace a hash made with outdated parameters; if that fails, a later login retries."""
    if verified.new_hash is None:
        return
    try:
        with rt.transaction() as session:
            users_queries.replace_hash(session, account.id, verified.old_hash, verified.new_hash)
    except DATABASE_ERRORS as error:
        log.warning("a password's hash was not renewed: %s", reason_of(error))


def _wait_for_second(
    rt: Runtime,
    account: Account,
    factor: FirstFactor,
    methods: tuple[MfaMethod, ...],
    client: Client,
) -> MfaRequired:
    flow_token, expires_in = open_login(rt, account, factor.kind, client)
    details = {"mfa_required": True, "available_methods": methods}
    with rt.transaction() as session:
        # Not after the second step, because no password hash may be kept in Redis until then.
        if (verified := factor.password) is not None and verified.new_hash is not None:
            users_queries.replace_hash(session, account.id, verified.old_hash, verified.new_hash)
        audit.record(rt, session, _event(account, factor, client, details))
    _refund_attempt(rt, factor.password, client)
    return MfaRequired(flow_token, expires_in, methods)


@contextmanager
def refund_on_failure(
    rt: Runtime, verified: VerifiedPassword | None, client: Client
) -> Iterator[None]:
    """Do not count a correct password as a failure if something else fails in the block.

    CredentialsFailed means the password is no longer correct: then it stays counted.
    """
    try:
        yield
    except CredentialsFailed:
        raise
    except BaseException:
        _refund_attempt(rt, verified, client)
        raise


def _refund_attempt(rt: Runtime, verified: VerifiedPassword | None, client: Client) -> None:
    """Refund a correct password's attempt; wrong ones before it stay counted."""
    if verified is not None:
        rt.limits.attempts.give_back(verified.attempts_key, client.network, verified.attempt)


def _event(
    account: Account, factor: FirstFactor, client: Client, details: Mapping[str, object]
) -> Event:
    return Event(
        factor.action,
        factor.entity_type,
        client,
        user_id=account.id,
        entity_id=factor.entity_id,
        entity_name=factor.entity_name,
        details={**factor.details, **details},
    )
