"""Pending logins: what Redis keeps of a login between its first step and its second."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from redis.exceptions import RedisError

from app.audit.models import Action, EntityType, Event
from app.core.client import Client
from app.core.errors import RateLimited
from app.core.runtime import Runtime
from app.crypto.tokens import digest, random_hex, random_uuid
from app.mfa import service as mfa
from app.mfa.errors import MfaFlowInvalid
from app.mfa.models import MfaMethod
from app.settings import keys
from app.store.flow_store import Flow
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account

PREFIX = "mfa_"
MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class PendingLogin:
    """A login whose first factor is proven; `client` is that of the first step.

    `address_digest` is of the address that a code was mailed to, if that was the first factor.
    `flow_id` identifies it in the audit log, where no token may appear. `remember` is what the
    first step said of the session.
    """

    flow: Flow
    flow_id: str
    user_id: int
    session_version: int
    first_factor: str
    client: Client
    remember: bool | None = None
    address_digest: str | None = field(default=None, repr=False)

    def proves(self, account: Account) -> bool:
        """Return whether the first factor was a code that was mailed to the account's address."""
        return self.address_digest == digest(account.email)


@dataclass(frozen=True)
class SecondStep:
    """A second factor submitted for a pending login; `client` may differ from the first step's.

    `attempt` is the unique name under which it counts.
    """

    pending: PendingLogin
    account: Account
    method: MfaMethod
    client: Client
    attempt: str = field(default_factory=random_hex)

    def event(
        self, action: Action, details: Mapping[str, Any], factor_id: int | None = None
    ) -> Event:
        """Return an audit event about this step."""
        return Event(
            action,
            EntityType.MFA_FACTOR,
            self.client,
            user_id=self.account.id,
            entity_id=factor_id,
            entity_name=self.method,
            details={"method": self.method, "flow_id": self.pending.flow_id, **details},
        )


def open_pending(
    rt: Runtime,
    account: Account,
    first_factor: str,
    client: Client,
    *,
    remember: bool | None,
    proves_address: bool,
) -> tuple[str, int]:
    """Store a login whose first factor is proven; return its token and lifetime in seconds."""
    seconds = rt.settings.get(keys.MFA_FLOW_TTL_SECONDS)
    data = {
        "flow_id": random_uuid(),
        "user_id": account.id,
        "session_version": account.session_version,
        "first_factor": first_factor,
        # What instances of 0.1 and 0.2 ask for, and no more, since they may finish this login while
        # they are replaced.
        "account": account.created_at.isoformat(),
        "client": {"address": client.address, "user_agent": client.user_agent},
    }
    if proves_address:
        data["address_digest"] = digest(account.email)
    if remember is False:  # what is usual is left out: the version before does not know it
        data["remember"] = False
    token = mfa.pending_logins(rt).open(account.id, data, timedelta(seconds=seconds), PREFIX)
    return token, seconds


def get(rt: Runtime, flow_token: str) -> PendingLogin:
    """Return the pending login of a token.

    Raises: MfaFlowInvalid, also if another request has taken the last attempt: that request decides
    the outcome; MfaFlowExpired.
    """
    flow = mfa.get_open(mfa.pending_logins(rt), flow_token)
    if flow.attempts >= MAX_ATTEMPTS:
        raise MfaFlowInvalid
    stored = dict(flow.data)
    stored.pop("account", None)  # for version 0.1
    return PendingLogin(flow, client=Client(**stored.pop("client")), **stored)


def unchanged_account(rt: Runtime, pending: PendingLogin) -> Account:
    """Return the account, unless a change since the first step invalidates this login.

    Raises: AccountDisabled, PendingActivation, MfaFlowInvalid.
    """
    with rt.reading() as session:
        account = users_queries.find_account(session, pending.user_id)
    if account is None:
        raise MfaFlowInvalid
    users.require_sign_in_allowed(account)
    if account.session_version != pending.session_version:
        raise MfaFlowInvalid
    return account


def take_attempt(rt: Runtime, step: SecondStep) -> int:
    """Take one of the login's attempts and one of its account's slots, before a code is examined.

    Return the attempt's number, counted from 1. Of many concurrent requests all but five get no
    attempt, and take none of the account's slots. Raises: MfaFlowInvalid, RateLimited.
    """
    user_id, flow = step.account.id, step.pending.flow
    number = mfa.pending_logins(rt).take_attempt(flow, step.attempt, MAX_ATTEMPTS)
    if not number:
        raise MfaFlowInvalid
    try:
        key = identifiers.attempts_key(user_id)
        rt.limits.attempts.reserve(key, step.client.network, user_id, attempt=step.attempt)
    except RateLimited:
        _return_to_login(rt, step)
        raise
    return number


def give_back(rt: Runtime, step: SecondStep) -> None:
    """Undo `take_attempt`, if no code was judged or the verdict had no effect."""
    key = identifiers.attempts_key(step.account.id)
    rt.limits.attempts.give_back(key, step.client.network, step.attempt)
    _return_to_login(rt, step)


def _return_to_login(rt: Runtime, step: SecondStep) -> None:
    with suppress(RedisError):  # then the attempt stays spent
        mfa.pending_logins(rt).give_back(step.pending.flow, step.attempt)
