"""Use cases of a signed-in account's second factors.

Invariant: factors and recovery codes change only with a code that proves possession. The code is
consumed in the same transaction, under the account's row lock. An account's only factor is added
under that lock, too, so concurrent setups cannot both succeed; a unique constraint backs that up.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy.orm import Session

from app.audit.models import Action
from app.browsers import queries as browsers
from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.texts import parsed_id
from app.crypto.secret_box import SecretUnreadable
from app.mfa import queries, recovery_codes, service, totp
from app.mfa.errors import (
    FactorNameTooLong,
    FactorNotFound,
    MfaCodeInvalid,
    MfaFactorAlreadyExists,
    SetupInvalid,
    SetupOfAnotherAccount,
    TotpCodeMalformed,
)
from app.mfa.models import MAX_FACTOR_NAME_LENGTH, CodePurpose, MfaFactor
from app.mfa.service import Notice
from app.sessions import service as sessions
from app.settings import frontend_keys, keys
from app.store.flow_store import FlowState
from app.users import identifiers
from app.users import service as users
from app.users.models import Account

TOKEN_PREFIX = "mfs_"
DEFAULT_NAME = "Authenticator app"


@dataclass(frozen=True)
class SecondFactors:
    """The second factors of an account, as its owner sees them."""

    enabled: bool
    factors: Sequence[MfaFactor]
    recovery_codes_remaining: int


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


def show(rt: Runtime, user_id: int) -> SecondFactors:
    """Return the second factors of an account."""
    with rt.reading() as session:
        factor = queries.find_totp(session, user_id)
        if factor is None:
            return SecondFactors(False, (), 0)
        return SecondFactors(True, (factor,), queries.count_unused_codes(session, user_id))


def start_setup(rt: Runtime, account: Account) -> StartedSetup:
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
        "secret": rt.secret_box.seal(secret, _setup_row_name(account.id)),
    }
    token = service.totp_setups(rt).open(account.id, waiting, timedelta(seconds=life), TOKEN_PREFIX)
    title = rt.settings.get(frontend_keys.BRANDING_TITLE)
    uri = totp.otpauth_uri(secret, title, account.email or account.username)
    return StartedSetup(token, life, secret, uri)


def finish_setup(
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
    name = (name or "").strip() or DEFAULT_NAME
    if len(name) > MAX_FACTOR_NAME_LENGTH:
        raise FactorNameTooLong
    users.require_activated(principal.account)
    _require_no_factor(rt, principal.account)
    secret = _proven_secret(rt, principal, flow_token.strip(), code)
    codes = recovery_codes.new_codes()
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        if queries.find_totp(session, account.id) is not None:
            raise MfaFactorAlreadyExists
        users.require_activated(account)
        sealed = rt.secret_box.seal(secret, service.secret_row_name(account.id))
        factor = queries.add_totp(session, account.id, name=name, secret=sealed, now=rt.clock.now())
        service.store_codes(rt, session, account.id, codes)
        browsers.void(session, account.id)
        about = {"factor_id": factor.id, "factor_name": name, "recovery_code_count": len(codes)}
        service.record(rt, session, Action.USER_MFA_ENABLE, factor, client, **about)
        users.notify_owner(rt, session, account, Notice.FACTOR_ADDED)
    return Enabled(factor, codes)


def remove_factor(
    rt: Runtime, principal: Principal, factor_id: str, *, code: str | None, client: Client
) -> None:
    """Remove a factor and all recovery codes, and void flows that wait for a second factor.

    `code` is a TOTP code or an unused recovery code; it is checked before the id, but not consumed
    if there is no such factor. Sessions continue.
    Raises: errors.PROOF, FactorNotFound, RateLimited; AccountDisabled, TokenInvalid if the account
    or session has just become invalid.
    """
    with proven(rt, principal, code, client) as (session, account):
        factor = queries.find_totp(session, account.id)
        if factor is None or factor.id != parsed_id(factor_id):
            raise FactorNotFound
        service.remove(rt, session, account)
        browsers.void(session, account.id)
        about = {"factor_id": factor.id, "factor_name": factor.name}
        service.record(rt, session, Action.USER_MFA_DISABLE, factor, client, **about)
    service.discard_flows(rt, principal.user_id)


def regenerate_recovery_codes(
    rt: Runtime, principal: Principal, *, code: str | None, client: Client
) -> list[str]:
    """Replace all recovery codes with ten new ones; return them.

    Raises: errors.PROOF, RateLimited; AccountDisabled, TokenInvalid if the account or session has
    just become invalid.
    """
    with proven(rt, principal, code, client) as (session, account):
        factor = queries.find_totp(session, account.id)
        if factor is None:
            raise MfaCodeInvalid  # removed since the code was checked
        codes = recovery_codes.new_codes()
        service.store_codes(rt, session, account.id, codes)
        browsers.void(session, account.id)
        action = Action.USER_MFA_RECOVERY_CODES_REGENERATE
        service.record(rt, session, action, factor, client, recovery_code_count=len(codes))
        users.notify_owner(rt, session, account, Notice.RECOVERY_CODES_REGENERATED)
    return codes


@contextmanager
def proven(
    rt: Runtime, principal: Principal, code: str | None, client: Client
) -> Iterator[tuple[Session, Account]]:
    """Yield a transaction and the account locked in it, for a block that `code` authorises.

    Wrong codes count like failed logins.
    """
    users.require_activated(principal.account)
    if code is None or not code.strip():
        raise MfaCodeInvalid
    user_id, network = principal.user_id, client.network
    key = identifiers.attempts_key(user_id)
    with rt.limits.attempts.counted_attempt(key, network, user_id) as attempt:
        if service.is_totp(code):
            factor = service.find_totp(rt, user_id)
            proof: service.Proof = service.check_totp(rt, factor, code, CodePurpose.MANAGEMENT)
        else:
            proof = service.check_recovery_code(rt, user_id, code)
    rt.limits.attempts.give_back(key, network, attempt)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        users.require_activated(account)
        service.consume(rt, session, account, proof)
        yield session, account


def _proven_secret(rt: Runtime, principal: Principal, flow_token: str, typed: str) -> str:
    """Return the secret of the account's open setup, if `typed` is a current code of it."""
    flow = service.totp_setups(rt).find(flow_token)
    if flow is None or flow.state is not FlowState.OPEN:
        raise SetupInvalid
    if flow.data["user_id"] != principal.user_id:
        raise SetupOfAnotherAccount
    if flow.data["session_version"] != principal.account.session_version:
        raise SetupInvalid
    code = totp.normalised(typed)
    if code is None:
        raise TotpCodeMalformed
    try:
        secret = rt.secret_box.open(flow.data["secret"], _setup_row_name(principal.user_id))
    except SecretUnreadable:
        raise SetupInvalid from None  # its key was removed from the keyring meanwhile
    if totp.matching_step(secret, code, rt.clock.now()) is None:
        raise MfaCodeInvalid
    return secret


def _require_no_factor(rt: Runtime, account: Account) -> None:
    if service.find_totp(rt, account.id) is not None:
        raise MfaFactorAlreadyExists


def _setup_row_name(user_id: int) -> str:
    """Return the row name a pending secret is sealed for; it cannot be opened as a factor's."""
    return f"totp_setup:{user_id}"
