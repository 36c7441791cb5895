"""What proven factors grant: a session, or a login that waits for its second factor.

Invariant: a pending login and its code are consumed together, once. The login is consumed first, in
Redis, and reopened only if that cannot lead to a second session: either nothing was written, or the
code has a row of its own, which a committed session has marked used, so the same code would be
refused.

When a replica takes over, Redis may forget its last moments, and with them that a proof was
consumed. The database does not: a proof that only Redis has opens a session whose id is derived
from its flow, and no id is used twice; a session that has ended keeps its row.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NoReturn
from uuid import UUID

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.browsers import service as browsers
from app.browsers.errors import NotRemembered
from app.browsers.service import SignIn
from app.core.access import NEVER, TokenPair
from app.core.client import Client, SignInWish
from app.core.errors import AppError, DatabaseConnectionLost
from app.core.runtime import Runtime
from app.crypto.tokens import digest
from app.login import pending_login
from app.login.errors import CredentialsFailed
from app.login.pending_login import PendingLogin, SecondStep
from app.mfa import email_codes
from app.mfa import service as mfa
from app.mfa.errors import MfaFlowInvalid
from app.mfa.models import MfaMethod
from app.mfa.service import Proof, TotpProof
from app.sessions import service as sessions
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account


class LoginStatus(StrEnum):
    """The outcome of a login step."""

    AUTHENTICATED = "authenticated"
    PASSWORD_CHANGE_REQUIRED = "password_change_required"
    MFA_REQUIRED = "mfa_required"


class FirstFactorKind(StrEnum):
    """The kind of proof that a login begins with."""

    PASSWORD = "password"
    EXTERNAL_AUTH = "external_auth"
    PASSKEY = "passkey"
    EMAIL_CODE = "email_code"

    @property
    def needs_second(self) -> bool:
        """Return whether a second factor is required; a passkey has already verified its user."""
        return self is not FirstFactorKind.PASSKEY


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
    """No session yet: a second factor is required within `expires_in` seconds.

    `remember_device_seconds` is for how long the browser can then be remembered; 0 if it cannot.
    """

    flow_token: str = field(repr=False)
    expires_in: int
    methods: tuple[MfaMethod, ...]
    remember_device_seconds: int

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
    factor that needs no second: it runs in the transaction that opens the session. `flow` names the
    flow of a proof that no row of the database makes single-use.
    """

    kind: FirstFactorKind
    action: Action
    entity_type: EntityType
    entity_name: str
    password: VerifiedPassword | None = None
    entity_id: int | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    consume: Callable[[Session], None] | None = None
    flow: str | None = field(default=None, repr=False)

    def event(self, account: Account, client: Client, details: Mapping[str, object]) -> Event:
        """Return an audit event about this factor."""
        return Event(
            self.action,
            self.entity_type,
            client,
            user_id=account.id,
            entity_id=self.entity_id,
            entity_name=self.entity_name,
            details={**self.details, **details},
        )


def second_factors(rt: Runtime, account: Account, first: str) -> tuple[MfaMethod, ...]:
    """Return what may follow a first factor that needs a second: never another mailed code."""
    is_mailed = first == FirstFactorKind.EMAIL_CODE
    found = mfa.methods(rt, account)
    return tuple(each for each in found if not (is_mailed and each is MfaMethod.EMAIL_CODE))


def complete_login(
    rt: Runtime, account: Account, factor: FirstFactor, client: Client, wish: SignInWish
) -> LoginOutcome | MfaRequired:
    """Turn a proven first factor into a session, or make the login wait for a second factor.

    Every way to sign in goes through here. `account` is as read when the factor was proven. A
    browser that is remembered need not take the second step; its session begins unconfirmed.
    Raises: AccountDisabled, PendingActivation; CredentialsFailed if the account has changed since,
    or the factor was consumed meanwhile.
    """
    with refund_on_failure(rt, factor.password, client):
        users.require_sign_in_allowed(account)
        methods = second_factors(rt, account, factor.kind) if factor.kind.needs_second else ()
        skips_second = bool(methods) and browsers.is_remembered(rt, account.id, wish.device)
        if methods and not skips_second:
            return _wait_for_second(rt, account, factor, methods, client, wish)
        sign_in = SignIn(client, wish, (factor.kind,), skips_second=skips_second)
        try:
            outcome = _complete(rt, account, factor, sign_in)
        except NotRemembered:
            return _wait_for_second(rt, account, factor, methods, client, wish)
    if (verified := factor.password) is not None:
        rt.limits.attempts.clear(verified.attempts_key, client.network, verified.attempt)
    return outcome


def _complete(rt: Runtime, account: Account, factor: FirstFactor, sign_in: SignIn) -> LoginOutcome:
    """Open the session of a login without a second step.

    Raises: CredentialsFailed, NotRemembered.
    """
    is_limited = users.is_password_change_forced(rt, account)
    details = {"mfa_required": False} if factor.kind.needs_second else {}
    if sign_in.skips_second:
        details["remembered_browser"] = True
    details["password_change_required"] = is_limited

    def consume(session: Session) -> None:
        _renew_hash(session, account, factor.password)
        if factor.consume:
            factor.consume(session)

    client = sign_in.client
    event = factor.event(account, client, details)
    outcome = open_session(
        rt, account, client, event, consume, sign_in, is_limited=is_limited, flow=factor.flow
    )
    if outcome is None:
        raise CredentialsFailed
    return outcome


def complete_pending(
    rt: Runtime, step: SecondStep, number: int, proof: Proof, wish: SignInWish
) -> LoginOutcome:
    """Consume a pending login and its code and open the session, all or nothing.

    `number` is that of the attempt. `wish` is of the browser that gets the cookies. The account's
    failures are forgotten: both factors are proven.
    Raises: MfaFlowInvalid; AccountDisabled, PendingActivation if that happened meanwhile;
    MfaCodeInvalid, MfaRecoveryCodeUsed if another request has just used the same code.
    """
    account, pending = step.account, step.pending
    if not mfa.pending_logins(rt).consume(pending.flow, step.attempt):
        raise MfaFlowInvalid
    is_limited = users.is_password_change_forced(rt, account)
    details = {"attempt_count": number - 1, "password_change_required": is_limited}
    sign_in = _second_sign_in(rt, step, wish, is_limited=is_limited)
    if sign_in.grants:
        details["remember_device"] = True
    factor_id = proof.factor.id if isinstance(proof, TotpProof) else None
    event = step.event(Action.USER_MFA_CHALLENGE_SUCCESS, details, factor_id)

    def consume(session: Session) -> None:
        mfa.consume(rt, session, account, proof)
        if pending.proves(account):
            users_queries.prove_address(session, account, rt.clock.now())

    flow = pending.flow.name if proof is None else None
    try:
        outcome = open_session(
            rt, account, pending.client, event, consume, sign_in, is_limited=is_limited, flow=flow
        ) or _refuse(rt, pending)
    except BaseException as error:
        _reopen_if_safe(rt, step, error)
        raise
    for network in {step.client.network, pending.client.network}:
        rt.limits.attempts.clear(identifiers.attempts_key(account.id), network, step.attempt)
    _forget_email_code(rt, step)
    return outcome


def open_session(
    rt: Runtime,
    account: Account,
    client: Client,
    event: Event,
    consume: Callable[[Session], None],
    sign_in: SignIn,
    *,
    is_limited: bool,
    flow: str | None,
) -> LoginOutcome | None:
    """Start a session if the account is still as it was read, and record `event` with it.

    None if the account was disabled or its sessions were ended since: a login in progress must not
    survive that; also if `flow` has opened a session before, see `FirstFactor`. `consume` uses up,
    in the same transaction, what works only once, and raises if another request was faster. The
    cost does not depend on how many sessions the account has.
    Raises: DatabaseConnectionLost if the session may be open, or not; NotRemembered.
    """
    with rt.transaction() as session:
        if not users_queries.lock_unchanged(session, account):
            return None
        session_id = _session_id(account, flow) if flow else None
        if session_id and sessions.has_been_opened(session, session_id):
            return None
        consume(session)
        audit.record(rt, session, event)
        device = browsers.note(rt, session, account, sign_in)
        pair = sessions.open_session(
            rt,
            session,
            account.id,
            client,
            is_limited=is_limited,
            is_short=sign_in.wish.is_short,
            confirmed_at=NEVER if sign_in.skips_second else None,
            session_id=session_id,
        )
    return LoginOutcome(replace(pair, device=device), is_limited)


def _session_id(account: Account, flow: str) -> str:
    """Return the id of the only session that a flow can open."""
    hashed = bytes.fromhex(digest(f"{account.id}:{flow}"))
    return str(UUID(bytes=hashed[:16], version=4))


def _second_sign_in(rt: Runtime, step: SecondStep, wish: SignInWish, *, is_limited: bool) -> SignIn:
    """Return a sign-in that has taken its second step.

    The browser is that of this step. With a restricted session it is not remembered.
    """
    pending = step.pending
    if wish.remember is None:
        wish = replace(wish, remember=pending.remember)
    methods = (pending.first_factor, step.method)
    is_wanted = wish.remember_device and not wish.is_short
    grants = is_wanted and not is_limited and browsers.lasts_for(rt) > 0
    return SignIn(step.client, wish, methods, grants=grants)


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


def _refuse(rt: Runtime, pending: PendingLogin) -> NoReturn:
    """Raise how the account has changed: MfaFlowInvalid, AccountDisabled, PendingActivation."""
    pending_login.unchanged_account(rt, pending)
    raise MfaFlowInvalid


def _wait_for_second(
    rt: Runtime,
    account: Account,
    factor: FirstFactor,
    methods: tuple[MfaMethod, ...],
    client: Client,
    wish: SignInWish,
) -> MfaRequired:
    is_mailed = factor.kind is FirstFactorKind.EMAIL_CODE
    flow_token, expires_in = pending_login.open_pending(
        rt,
        account,
        factor.kind,
        client,
        remember=wish.remember,
        proves_address=is_mailed,
    )
    details = {"mfa_required": True, "available_methods": methods}
    with rt.transaction() as session:
        # Not after the second step, because no password hash may be kept in Redis until then.
        _renew_hash(session, account, factor.password)
        audit.record(rt, session, factor.event(account, client, details))
    _refund_attempt(rt, factor.password, client)
    return MfaRequired(flow_token, expires_in, methods, browsers.lasts_for(rt))


def _renew_hash(session: Session, account: Account, verified: VerifiedPassword | None) -> None:
    """Replace a hash that was made with outdated parameters."""
    if verified is not None and verified.new_hash is not None:
        users_queries.replace_hash(session, account.id, verified.old_hash, verified.new_hash)


def _refund_attempt(rt: Runtime, verified: VerifiedPassword | None, client: Client) -> None:
    """Refund a correct password's attempt; wrong ones before it stay counted."""
    if verified is not None:
        rt.limits.attempts.give_back(verified.attempts_key, client.network, verified.attempt)


def _reopen_if_safe(rt: Runtime, step: SecondStep, error: BaseException) -> None:
    """Allow the login to be retried, unless it may have opened a session with an e-mail code.

    No database row records that such a code was used: only its login prevents a replay.
    """
    if step.method is MfaMethod.EMAIL_CODE and not is_rolled_back(error):
        _forget_email_code(rt, step)
        return
    with suppress(RedisError):  # then the login stays consumed, which is safe
        mfa.pending_logins(rt).reopen(step.pending.flow, step.attempt)


def is_rolled_back(error: BaseException) -> bool:
    """Return whether it is certain that what failed has opened no session."""
    is_known = isinstance(error, (AppError, SQLAlchemyError))
    return is_known and not isinstance(error, DatabaseConnectionLost)


def _forget_email_code(rt: Runtime, step: SecondStep) -> None:
    if step.method is MfaMethod.EMAIL_CODE:
        with suppress(RedisError):  # the code is worthless without its login
            email_codes.delete(rt, step.account, "flow", step.pending.flow.name)
