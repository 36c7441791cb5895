"""Use cases of a signed-in account's second factors (spec 02 §1.4, §1.7, §1.8).

Invariant: factors and recovery codes change only with a code that proves possession; the code is
consumed in the same transaction, under the account's row lock.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import Principal
from app.core.client import Client
from app.core.ids import parsed_id
from app.core.runtime import Runtime
from app.mfa import flows, queries, recovery_codes, service, totp
from app.mfa.errors import FactorNotFound, MfaCodeInvalid
from app.mfa.notices import Notice
from app.mfa.queries import ListedFactor
from app.mfa.service import Purpose, RecoveryCodeProof, StoredProof
from app.sessions import service as sessions
from app.users import identifiers, notices
from app.users import service as users
from app.users.models import Account

T = TypeVar("T")


def list_factors(rt: Runtime, user_id: int) -> list[ListedFactor]:
    """Return the factors of an account, ordered by id."""
    return queries.list_factors(rt.database, user_id)


def remove_factor(
    rt: Runtime, principal: Principal, factor_id: str, *, code: str | None, client: Client
) -> None:
    """Remove a factor and all recovery codes, and void flows that wait for a second factor.

    `code` is a TOTP code or an unused recovery code; it is checked before the id, but not consumed
    if there is no such factor. Sessions continue.
    Raises: PendingActivation, RateLimited, MfaCodeInvalid, MfaRecoveryCodeUsed, FactorNotFound;
    AccountDisabled, TokenInvalid if the account or session has just become invalid.
    """

    def remove(session: Session, account: Account) -> None:
        wanted = parsed_id(factor_id)
        factor = queries.find_factor(session, account.id, wanted) if wanted is not None else None
        if factor is None:
            raise FactorNotFound
        service.remove(rt, session, account)
        details = {"method": factor.method, "factor_id": factor.id, "factor_name": factor.name}
        _record(rt, session, Action.USER_MFA_DISABLE, account, factor, client, details)

    _with_proof(rt, principal, code, client, remove)
    flows.discard_all(rt, principal.user_id)


def regenerate_recovery_codes(
    rt: Runtime, principal: Principal, *, code: str | None, client: Client
) -> list[str]:
    """Replace all recovery codes with ten new ones; return them.

    Raises: PendingActivation, RateLimited, MfaCodeInvalid, MfaRecoveryCodeUsed; AccountDisabled,
    TokenInvalid if the account or session has just become invalid.
    """

    def regenerate(session: Session, account: Account) -> list[str]:
        factor = queries.get_factor(session, account.id)
        codes = recovery_codes.new_codes()
        service.store_codes(rt, session, account.id, codes)
        details = {"method": factor.method, "recovery_code_count": len(codes)}
        action = Action.USER_MFA_RECOVERY_CODES_REGENERATE
        _record(rt, session, action, account, factor, client, details)
        notices.notify_owner(rt, session, account, Notice.RECOVERY_CODES_REGENERATED)
        return codes

    return _with_proof(rt, principal, code, client, regenerate)


def _with_proof(
    rt: Runtime,
    principal: Principal,
    code: str | None,
    client: Client,
    change: Callable[[Session, Account], T],
) -> T:
    """Apply `change` if `code` is right; wrong codes count like failed logins (decision A11)."""
    users.require_activated(principal.account)
    if code is None or not code.strip():
        raise MfaCodeInvalid
    attempts_key = identifiers.attempts_key(principal.user_id)
    with rt.attempt_limits.counted_attempt(
        attempts_key, client.network, principal.user_id
    ) as attempt:
        proof = _proof(rt, principal.user_id, code)
    rt.attempt_limits.give_back(attempts_key, client.network, attempt)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        users.require_activated(account)
        if not service.consume_proof(rt, session, account.id, proof):
            raise proof.lost_race_error
        if isinstance(proof, RecoveryCodeProof):
            notices.notify_owner(rt, session, account, Notice.RECOVERY_CODE_USED)
        return change(session, account)


def _proof(rt: Runtime, user_id: int, code: str) -> StoredProof:
    digits = totp.normalised(code)
    if digits is None:
        return service.check_recovery_code(rt, user_id, code)
    factor = queries.find_totp(rt.database, user_id)
    if factor is None:
        raise MfaCodeInvalid
    return service.check_totp(rt, factor, digits, purpose=Purpose.MANAGEMENT)


def _record(
    rt: Runtime,
    session: Session,
    action: Action,
    account: Account,
    factor: ListedFactor,
    client: Client,
    details: Mapping[str, object],
) -> None:
    event = Event(
        action,
        EntityType.MFA_FACTOR,
        client=client,
        user_id=account.id,
        entity_id=factor.id,
        entity_name=factor.name,
        details=details,
    )
    audit.record(rt, session, event)
