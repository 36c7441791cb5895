"""Use cases of setting up an authenticator app.

Invariant: a setup is consumed before its factor is written, and reopened only if certainly nothing
was written. An account's only factor is added under its row lock, so concurrent setups cannot both
succeed; a unique constraint backs that up.
"""

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from app.audit.models import Action
from app.core.access import Principal
from app.core.client import Client
from app.core.errors import AppError
from app.core.flow_store import Flow, FlowState, FlowStore
from app.core.runtime import Runtime
from app.core.secret_box import SecretUnreadable
from app.core.tokens import random_hex
from app.mfa import flows, queries, recovery_codes, service, totp
from app.mfa.errors import (
    FactorNameTooLong,
    MfaCodeInvalid,
    MfaFactorAlreadyExists,
    SetupInvalid,
    SetupOfAnotherAccount,
    TotpCodeMalformed,
)
from app.mfa.models import MAX_FACTOR_NAME_LENGTH, MfaFactor
from app.mfa.service import Notice
from app.sessions import service as sessions
from app.settings import keys
from app.users import notices
from app.users import service as users
from app.users.models import Account

TOKEN_PREFIX = "mfs_"
DEFAULT_NAME = "Authenticator app"


@dataclass(frozen=True)
class StartedSetup:
    """What an authenticator app needs; `expires_in` is the setup's lifetime in seconds."""

    flow_token: str = field(repr=False)
    expires_in: int
    secret: str = field(repr=False)
    otpauth_uri: str = field(repr=False)


@dataclass(frozen=True)
class Enabled:
    """The new factor, and the recovery codes, shown only once and never stored in plain text."""

    factor: MfaFactor
    recovery_codes: list[str] = field(repr=False)


def start(rt: Runtime, account: Account) -> StartedSetup:
    """Create a secret that awaits its first code; setups started earlier stay open.

    Ending all of the account's sessions, as a new password does, voids the setup.
    Raises: MfaFactorAlreadyExists.
    """
    _require_no_factor(rt, account)
    life = rt.settings.get(keys.MFA_FLOW_TTL_SECONDS)
    secret = totp.new_secret()
    waiting = {
        "user_id": account.id,
        "session_version": account.session_version,
        "secret": rt.secret_box.seal(secret, _secret_row_name(account.id)),
    }
    token = flows.totp_setups(rt).open(account.id, waiting, timedelta(seconds=life), TOKEN_PREFIX)
    issuer = rt.settings.get(keys.BRANDING_TITLE) or keys.BRANDING_TITLE.default
    uri = totp.otpauth_uri(secret, issuer, account.email or account.username)
    return StartedSetup(token, life, secret, uri)


def finish(
    rt: Runtime,
    principal: Principal,
    *,
    flow_token: str,
    code: str,
    name: str | None,
    client: Client,
) -> Enabled:
    """Add the authenticator app that generated `code`, and create recovery codes.

    The code stays valid for the next login. Raises, in this order:
    FactorNameTooLong, PendingActivation, MfaFactorAlreadyExists, SetupInvalid,
    SetupOfAnotherAccount, TotpCodeMalformed, MfaCodeInvalid; AccountDisabled, TokenInvalid and
    some of the above again if the state has changed meanwhile.
    """
    name = _tidy_name(name)
    users.require_activated(principal.account)
    _require_no_factor(rt, principal.account)
    setups = flows.totp_setups(rt)
    flow = _open_flow(rt, principal, setups.find(flow_token.strip()))
    secret = _proven_secret(rt, principal.user_id, flow, code)
    codes = recovery_codes.new_codes()
    attempt = random_hex()
    if not setups.consume(flow, attempt):
        raise _used_up(rt, principal)
    with ExitStack() as undo:
        undo.callback(_reopen, setups, flow, attempt)
        with rt.transaction() as session:
            account = _lock_account_without_factor(rt, session, principal)
            users.require_activated(account)
            factor = _enable(rt, session, account, name, secret, codes, client)
            undo.pop_all()  # a commit that fails may have taken effect all the same
    return Enabled(factor, codes)


def _reopen(setups: FlowStore, flow: Flow, attempt: str) -> None:
    with suppress(RedisError):  # then the setup stays consumed, which is safe
        setups.reopen(flow, attempt)


def _open_flow(rt: Runtime, principal: Principal, flow: Flow | None) -> Flow:
    """Return the flow if it is an open setup that this account can finish.

    Raises: SetupInvalid, SetupOfAnotherAccount; MfaFactorAlreadyExists if it was just finished.
    """
    if flow is not None and flow.state is FlowState.CONSUMED:
        raise _used_up(rt, principal)
    if flow is None or flow.state is not FlowState.OPEN:
        raise SetupInvalid
    if flow.data["user_id"] != principal.user_id:
        raise SetupOfAnotherAccount
    if flow.data["session_version"] != principal.account.session_version:
        raise SetupInvalid
    return flow


def _used_up(rt: Runtime, principal: Principal) -> AppError:
    """Return the error for a setup that another request is finishing or has finished."""
    with rt.transaction() as session:
        # Waits for that request's row lock, unless it has not started writing yet.
        account = sessions.lock_account(rt, session, principal)
        factor = queries.find_totp(session, account.id)
    return MfaFactorAlreadyExists() if factor else SetupInvalid()


def _lock_account_without_factor(rt: Runtime, session: Session, principal: Principal) -> Account:
    account = sessions.lock_account(rt, session, principal)
    if queries.find_totp(session, account.id) is not None:
        raise MfaFactorAlreadyExists
    return account


def _proven_secret(rt: Runtime, user_id: int, flow: Flow, typed: str) -> str:
    """Return the secret of a setup, if `typed` is a current code of it."""
    code = totp.normalised(typed)
    if code is None:
        raise TotpCodeMalformed
    try:
        secret = rt.secret_box.open(flow.data["secret"], _secret_row_name(user_id))
    except SecretUnreadable:
        raise SetupInvalid from None  # its key was removed from the keyring meanwhile
    if totp.matching_step(secret, code, rt.clock.now()) is None:
        raise MfaCodeInvalid
    return secret


def _enable(
    rt: Runtime,
    session: Session,
    account: Account,
    name: str,
    secret: str,
    codes: list[str],
    client: Client,
) -> MfaFactor:
    sealed = rt.secret_box.seal(secret, service.secret_row_name(account.id))
    now = rt.clock.now()
    factor = queries.add_totp(session, account.id, name=name, secret=sealed, now=now)
    service.store_codes(rt, session, account.id, codes)
    about = {"factor_id": factor.id, "factor_name": name, "recovery_code_count": len(codes)}
    service.record(rt, session, Action.USER_MFA_ENABLE, factor, client, **about)
    notices.notify_owner(rt, session, account, Notice.FACTOR_ADDED)
    return factor


def _require_no_factor(rt: Runtime, account: Account) -> None:
    if service.find_totp(rt, account.id) is not None:
        raise MfaFactorAlreadyExists


def _tidy_name(typed: str | None) -> str:
    name = (typed or "").strip() or DEFAULT_NAME
    if len(name) > MAX_FACTOR_NAME_LENGTH:
        raise FactorNameTooLong
    return name


def _secret_row_name(user_id: int) -> str:
    """Return the row name a pending secret is sealed for; it cannot be opened as a factor's."""
    return f"totp_setup:{user_id}"
