"""Use cases of a signed-in account's second factors.

Invariant: factors and recovery codes change only with a code that proves possession; the code is
consumed in the same transaction, under the account's row lock.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.audit.models import Action
from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.texts import parsed_id
from app.mfa import flows, queries, recovery_codes, service, totp
from app.mfa.errors import FactorNotFound, MfaCodeInvalid
from app.mfa.models import MfaFactor
from app.mfa.service import Notice, Purpose, RecoveryCodeProof, StoredProof
from app.sessions import service as sessions
from app.users import identifiers, notices
from app.users import service as users
from app.users.models import Account


@dataclass(frozen=True)
class SecondFactors:
    """The second factors of an account, as its owner sees them."""

    enabled: bool
    factors: Sequence[MfaFactor]
    recovery_codes_remaining: int


def show(rt: Runtime, user_id: int) -> SecondFactors:
    """Return the second factors of an account."""
    with rt.reading() as session:
        factor = queries.find_totp(session, user_id)
        if factor is None:
            return SecondFactors(False, (), 0)
        return SecondFactors(True, (factor,), queries.count_unused_codes(session, user_id))


def remove_factor(
    rt: Runtime, principal: Principal, factor_id: str, *, code: str | None, client: Client
) -> None:
    """Remove a factor and all recovery codes, and void flows that wait for a second factor.

    `code` is a TOTP code or an unused recovery code; it is checked before the id, but not consumed
    if there is no such factor. Sessions continue.
    Raises: PendingActivation, RateLimited, MfaCodeInvalid, MfaRecoveryCodeUsed, FactorNotFound;
    AccountDisabled, TokenInvalid if the account or session has just become invalid.
    """
    with _proven(rt, principal, code, client) as (session, account):
        factor = queries.find_totp(session, account.id)
        if factor is None or factor.id != parsed_id(factor_id):
            raise FactorNotFound
        service.remove(rt, session, account)
        about = {"factor_id": factor.id, "factor_name": factor.name}
        service.record(rt, session, Action.USER_MFA_DISABLE, factor, client, **about)
    flows.discard_all(rt, principal.user_id)


def regenerate_recovery_codes(
    rt: Runtime, principal: Principal, *, code: str | None, client: Client
) -> list[str]:
    """Replace all recovery codes with ten new ones; return them.

    Raises: PendingActivation, RateLimited, MfaCodeInvalid, MfaRecoveryCodeUsed; AccountDisabled,
    TokenInvalid if the account or session has just become invalid.
    """
    with _proven(rt, principal, code, client) as (session, account):
        factor = queries.find_totp(session, account.id)
        if factor is None:
            raise MfaCodeInvalid  # removed since the code was checked
        codes = recovery_codes.new_codes()
        service.store_codes(rt, session, account.id, codes)
        action = Action.USER_MFA_RECOVERY_CODES_REGENERATE
        service.record(rt, session, action, factor, client, recovery_code_count=len(codes))
        notices.notify_owner(rt, session, account, Notice.RECOVERY_CODES_REGENERATED)
    return codes


@contextmanager
def _proven(
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
        proof = _proof(rt, user_id, code)
    rt.limits.attempts.give_back(key, network, attempt)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        users.require_activated(account)
        if not service.consume_proof(rt, session, proof):
            raise proof.lost_race_error
        if isinstance(proof, RecoveryCodeProof):
            notices.notify_owner(rt, session, account, Notice.RECOVERY_CODE_USED)
        yield session, account


def _proof(rt: Runtime, user_id: int, code: str) -> StoredProof:
    digits = totp.normalised(code)
    if digits is None:
        return service.check_recovery_code(rt, user_id, code)
    factor = service.find_totp(rt, user_id)
    if factor is None:
        raise MfaCodeInvalid
    return service.check_totp(rt, factor, digits, purpose=Purpose.MANAGEMENT)
