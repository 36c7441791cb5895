"""Logins waiting for their second factor."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum

from redis.exceptions import RedisError

from app.core.client import Client
from app.core.errors import RateLimited
from app.core.flow_store import Flow, FlowState
from app.core.runtime import Runtime
from app.core.tokens import random_hex, random_uuid
from app.mfa import flows
from app.mfa.errors import MfaFlowExpired, MfaFlowInvalid
from app.settings import keys
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account

PREFIX = "mfa_"
MAX_ATTEMPTS = 5


class FirstFactorKind(StrEnum):
    """The kind of proof that a login begins with."""

    PASSWORD = "password"
    EXTERNAL_AUTH = "external_auth"
    PASSKEY = "passkey"

    @property
    def needs_second(self) -> bool:
        """Return whether a second factor is required; a passkey has already verified its user."""
        return self is not FirstFactorKind.PASSKEY


@dataclass(frozen=True)
class MfaLogin:
    """A login whose first factor is proven; `client` is that of the first step.

    `flow_id` identifies it in the audit log, where no token may appear. `account_created_at` is ISO
    8601 text; it distinguishes the account from a later one with the same id, as SQLite reuses ids.
    """

    flow: Flow
    flow_id: str
    user_id: int
    account_created_at: str
    session_version: int
    first_factor: FirstFactorKind
    client: Client


@dataclass(frozen=True)
class Attempt:
    """One attempt at a login, under a unique `name`; `number` counts them from 1."""

    name: str
    number: int


def open_login(
    rt: Runtime, account: Account, first_factor: FirstFactorKind, client: Client
) -> tuple[str, int]:
    """Store a login pending its second factor; return its token and lifetime in seconds."""
    seconds = rt.settings.get(keys.MFA_FLOW_TTL_SECONDS)
    data = {
        "flow_id": random_uuid(),
        "user_id": account.id,
        "account": account.created_at.isoformat(),
        "session_version": account.session_version,
        "first_factor": first_factor,
        "client": asdict(client),
    }
    token = flows.logins(rt).open(account.id, data, timedelta(seconds=seconds), PREFIX)
    return token, seconds


def get_login(rt: Runtime, flow_token: str) -> MfaLogin:
    """Return the login of a token.

    Raises: MfaFlowInvalid, also if another request has taken the last attempt: that request decides
    the outcome; MfaFlowExpired.
    """
    token = flow_token.strip()
    login = _open_login_of(flows.logins(rt).find(token) if token else None)
    if login.flow.attempts >= MAX_ATTEMPTS:
        raise MfaFlowInvalid
    return login


def take_attempt(rt: Runtime, login: MfaLogin, client: Client) -> Attempt:
    """Take one of the login's attempts and one of its account's slots, before a code is examined.

    Of many concurrent requests all but five get no attempt, and take none of the account's slots.
    Raises: MfaFlowInvalid, RateLimited.
    """
    logins, name = flows.logins(rt), random_hex()
    number = logins.take_attempt(login.flow, name, MAX_ATTEMPTS)
    if not number:
        raise MfaFlowInvalid
    try:
        key = identifiers.attempts_key(login.user_id)
        rt.limits.attempts.reserve(key, client.network, login.user_id, attempt=name)
    except RateLimited:
        _return_to_login(rt, login, name)
        raise
    return Attempt(name, number)


def give_back(rt: Runtime, login: MfaLogin, attempt: Attempt, client: Client) -> None:
    """Undo `take_attempt`, if no code was judged or the verdict had no effect."""
    key = identifiers.attempts_key(login.user_id)
    rt.limits.attempts.give_back(key, client.network, attempt.name)
    _return_to_login(rt, login, attempt.name)


def _return_to_login(rt: Runtime, login: MfaLogin, name: str) -> None:
    with suppress(RedisError):  # then the attempt stays spent
        flows.logins(rt).give_back(login.flow, name)


def require_unchanged(login: MfaLogin, account: Account | None) -> Account:
    """Return the account, unless a change since the first step invalidates this login.

    Raises: AccountDisabled, PendingActivation, MfaFlowInvalid.
    """
    if account is None or account.created_at.isoformat() != login.account_created_at:
        raise MfaFlowInvalid
    users.require_sign_in_allowed(account)
    if account.session_version != login.session_version:
        raise MfaFlowInvalid
    return account


def unchanged_account(rt: Runtime, login: MfaLogin) -> Account:
    """Read the account of a login; raises what `require_unchanged` raises."""
    return require_unchanged(login, users_queries.look_up_account(rt.database, login.user_id))


def _open_login_of(flow: Flow | None) -> MfaLogin:
    """Return the login of an open flow.

    Raises: MfaFlowInvalid, MfaFlowExpired.
    """
    if flow is None or flow.state in {FlowState.CONSUMED, FlowState.EXHAUSTED}:
        raise MfaFlowInvalid
    if flow.state is FlowState.EXPIRED:
        raise MfaFlowExpired
    return MfaLogin(
        flow=flow,
        flow_id=flow.data["flow_id"],
        user_id=flow.data["user_id"],
        account_created_at=flow.data["account"],
        session_version=flow.data["session_version"],
        first_factor=FirstFactorKind(flow.data["first_factor"]),
        client=Client(**flow.data["client"]),
    )
