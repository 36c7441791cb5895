"""Password login, and `complete_login()`, which alone decides what a proven first factor earns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.tokens import TokenPair
from app.login import ways
from app.login.errors import CredentialsFailed
from app.login.mfa_login import FirstFactorKind, open_login
from app.mfa import service as mfa
from app.mfa.models import MfaMethod
from app.sessions import service as sessions
from app.sessions.opening import OneTimeUse
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import PendingActivation
from app.users.models import Account
from app.web.principal import AccountDisabled


class LoginStatus(StrEnum):
    """What a login led to."""

    AUTHENTICATED = "authenticated"
    PASSWORD_CHANGE_REQUIRED = "password_change_required"
    MFA_REQUIRED = "mfa_required"


@dataclass(frozen=True)
class LoginOutcome:
    """A session: whether all of it is open, and the pair whose cookies are written."""

    pair: TokenPair
    is_limited: bool

    @property
    def status(self) -> LoginStatus:
        """Return what to answer."""
        return (
            LoginStatus.PASSWORD_CHANGE_REQUIRED if self.is_limited else LoginStatus.AUTHENTICATED
        )


@dataclass(frozen=True)
class MfaRequired:
    """No session yet: a second factor is owed, within `expires_in` seconds."""

    flow_token: str = field(repr=False)
    expires_in: int
    methods: tuple[MfaMethod, ...]

    status = LoginStatus.MFA_REQUIRED


@dataclass(frozen=True)
class RightPassword:
    """A password that was checked, and counted as an attempt before it was.

    `attempts_key` is the name under which attempts are counted, `attempt` that of this one.
    `new_hash` replaces `old_hash`, which was made with old parameters; None where it is good.
    """

    attempts_key: str = field(repr=False)
    attempt: str
    old_hash: str = field(repr=False)
    new_hash: str | None = field(repr=False)


@dataclass(frozen=True)
class FirstFactor:
    """A proven first factor.

    `kind` decides whether a second one is asked for. `action`, the entity and `details` are what
    the audit log tells of it. `password` is the one that was typed, if any was. `use` is what
    makes the proof good once, for a factor that needs no second.
    """

    kind: FirstFactorKind
    action: Action
    entity_type: EntityType
    entity_name: str
    password: RightPassword | None = None
    entity_id: int | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    use: OneTimeUse | None = None


def log_in(
    rt: Runtime, *, identifier: str, password: str, client: Client
) -> LoginOutcome | MfaRequired:
    """Check identifier and password.

    Raises: PasswordLoginDisabled before any lookup; RateLimited; CredentialsFailed;
    AccountDisabled and PendingActivation for the right password only.
    Source: decisions A3, A4, A11, E20; spec, Authentication 7.
    """
    ways.require_password_login(rt)
    account, right = check_password(rt, identifier, password, client)
    factor = FirstFactor(
        kind=FirstFactorKind.PASSWORD,
        action=Action.USER_LOGIN,
        entity_type=EntityType.AUTH_SESSION,
        entity_name=identifier,
        password=right,
    )
    return complete_login(rt, account, factor, client)


def check_password(
    rt: Runtime, identifier: str, password: str, client: Client
) -> tuple[Account, RightPassword]:
    """Return the account of identifier and password, as it was when they were checked.

    The attempt counts as a failed one until `complete_login` or `uncount` knows better.
    Raises: RateLimited; CredentialsFailed, after the same work whether there is such an account.
    """
    who = identifiers.identifier(identifier)
    found = users_queries.find_credentials(rt.database, who)
    account, stored_hash = found or (None, None)
    if account is None:
        attempts_key = identifiers.attempts_key_of_nobody(who)
    else:
        attempts_key = identifiers.attempts_key(account.id)
    with rt.failed_secrets.judging(attempts_key, client.network) as attempt:
        verdict = rt.passwords.check(password, stored_hash)
    if account is None or stored_hash is None or not verdict.matches:
        raise CredentialsFailed
    return account, RightPassword(attempts_key, attempt, stored_hash, verdict.new_hash)


def complete_login(
    rt: Runtime, account: Account, factor: FirstFactor, client: Client
) -> LoginOutcome | MfaRequired:
    """Turn a proven first factor into a session, or have the login wait for a second factor.

    The one seam of every way to sign in. `account` is as it was when the factor was proven.
    Raises: AccountDisabled, PendingActivation; CredentialsFailed when the account changed while it
    was being proven, or the factor was used up meanwhile.
    Source: spec, Endpoint rules 3; spec 02 §1.1.
    """
    try:
        users.require_open(account)
    except (AccountDisabled, PendingActivation):
        uncount(rt, factor.password, client)
        raise
    methods = mfa.methods(rt, account) if factor.kind.needs_second else ()
    if methods:
        return _wait_for_second(rt, account, factor, methods, client)
    is_limited = sessions.is_change_forced(rt, account)
    details = {"mfa_required": False} if factor.kind.needs_second else {}
    details["password_change_required"] = is_limited
    event = _event(account, factor, client, details)
    pair = sessions.open_if_unchanged(
        rt, account, client, is_limited=is_limited, event=event, use=factor.use
    )
    if pair is None:
        raise CredentialsFailed
    if (right := factor.password) is not None:
        if right.new_hash is not None:
            with rt.transaction() as session:
                users_queries.replace_hash(session, account.id, right.old_hash, right.new_hash)
        rt.failed_secrets.clear(right.attempts_key, client.network, right.attempt)
    return LoginOutcome(pair, is_limited)


def _wait_for_second(
    rt: Runtime,
    account: Account,
    factor: FirstFactor,
    methods: tuple[MfaMethod, ...],
    client: Client,
) -> MfaRequired:
    uncount(rt, factor.password, client)  # also where its login cannot wait since Redis is away
    flow_token, expires_in = open_login(rt, account, factor.kind, client)
    details = {"mfa_required": True, "available_methods": methods}
    with rt.transaction() as session:
        # Now, since no hash may wait in Redis for the second step.
        if (right := factor.password) is not None and right.new_hash is not None:
            users_queries.replace_hash(session, account.id, right.old_hash, right.new_hash)
        audit.record(rt, session, _event(account, factor, client, details))
    return MfaRequired(flow_token, expires_in, methods)


def uncount(rt: Runtime, right: RightPassword | None, client: Client) -> None:
    """Have a right password be no failure; the wrong ones before it stay counted (decision E20)."""
    if right is not None:
        rt.failed_secrets.give_back(right.attempts_key, client.network, right.attempt)


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
