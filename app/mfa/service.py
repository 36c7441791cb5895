"""Second factors: which methods are available, whether a code is right, and consuming it.

Invariant: checking consumes nothing. A code works only once because a conditional statement
consumes it in the transaction of what it authorises: see `consume`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.client import Client
from app.core.runtime import Runtime
from app.crypto.secret_box import Resealed, Resealer
from app.mail import service as mail
from app.mfa import email_codes, queries, recovery_codes, totp
from app.mfa.errors import MfaCodeInvalid, MfaFlowExpired, MfaFlowInvalid, MfaRecoveryCodeUsed
from app.mfa.models import CodePurpose, MfaFactor, MfaMethod, MfaRecoveryCode
from app.settings import keys
from app.store import bulk
from app.store.flow_store import Flow, FlowState, FlowStore
from app.store.key_use import KeyUse
from app.users import service as users
from app.users.models import Account

log = logging.getLogger(__name__)


class Notice(StrEnum):
    """What is mailed to an account's owner: the sentence that says what happened."""

    FACTOR_ADDED = "An authenticator app was added. Signing in now also asks for its code."
    FACTOR_REMOVED = (
        "The authenticator app was removed, and the recovery codes with it. "
        "Signing in no longer asks for a code from the app."
    )
    RECOVERY_CODE_USED = "One of your recovery codes was just used. It cannot be used again."
    RECOVERY_CODES_REGENERATED = (
        "New recovery codes were made. The old ones cannot be used any more."
    )


@dataclass(frozen=True)
class TotpProof:
    """A correct TOTP code, not yet consumed: its time step and the factor as it was read."""

    factor: MfaFactor = field(repr=False)
    step: int
    purpose: CodePurpose


# None is a correct e-mail code, which has no database row: it is consumed with its pending login.
Proof = TotpProof | MfaRecoveryCode | None


def pending_logins(rt: Runtime) -> FlowStore:
    """Return the store of logins that wait for their second factor."""
    return FlowStore(rt.redis.breaker, rt.clock, "mfa-login")


def email_sign_ins(rt: Runtime) -> FlowStore:
    """Return the store of sign-ins that wait for the code that was mailed."""
    return FlowStore(rt.redis.breaker, rt.clock, "email-sign-in")


def totp_setups(rt: Runtime) -> FlowStore:
    """Return the store of setups that wait for the first code of the new authenticator app."""
    return FlowStore(rt.redis.breaker, rt.clock, "totp-setup")


def get_open(flows: FlowStore, typed: str) -> Flow:
    """Return the flow of a token that still waits for its code.

    Raises: MfaFlowInvalid, MfaFlowExpired.
    """
    token = typed.strip()
    flow = flows.find(token) if token else None
    if flow is None or flow.state in {FlowState.CONSUMED, FlowState.EXHAUSTED}:
        raise MfaFlowInvalid
    if flow.state is FlowState.EXPIRED:
        raise MfaFlowExpired
    return flow


def discard_flows(rt: Runtime, user_id: int) -> None:
    """Discard an account's pending logins, setups and e-mail codes, once its factors are removed.

    If Redis is down, they remain until they expire; the factors and recovery codes are gone anyway.
    """
    try:
        pending_logins(rt).discard_all(user_id)
        email_sign_ins(rt).discard_all(user_id)
        totp_setups(rt).discard_all(user_id)
        email_codes.delete_for_account(rt, user_id)
    except RedisError as error:
        log.warning("open flows of a changed account stay until they expire: %s", error)


def methods(rt: Runtime, account: Account) -> tuple[MfaMethod, ...]:
    """Return the methods available to an account now; empty if it needs no second factor."""
    with rt.reading() as session:
        has_totp = queries.find_totp(session, account.id) is not None
        has_code = has_totp and queries.count_unused_codes(session, account.id) > 0
    is_open = {
        MfaMethod.TOTP: has_totp,
        MfaMethod.RECOVERY_CODE: has_code,
        MfaMethod.EMAIL_CODE: _takes_email_code(rt, account, has_totp=has_totp),
    }
    return tuple(method for method in MfaMethod if is_open[method])


def find_totp(rt: Runtime, user_id: int) -> MfaFactor | None:
    """Return the account's authenticator app; None if it has none."""
    with rt.reading() as session:
        return queries.find_totp(session, user_id)


def is_totp(typed: str) -> bool:
    """Return whether a typed code has the form of one of an authenticator app."""
    return totp.normalised(typed) is not None


def check_totp(
    rt: Runtime, factor: MfaFactor | None, typed: str, purpose: CodePurpose = CodePurpose.LOGIN
) -> TotpProof:
    """Check a TOTP code.

    Raises: MfaCodeInvalid, also for a replay of one accepted for this purpose before, and without a
    factor; SecretUnreadable, in which case nothing was checked.
    """
    digits = totp.normalised(typed)
    if factor is None or digits is None:
        raise MfaCodeInvalid
    secret = rt.secret_box.open(factor.secret, secret_row_name(factor.user_id))
    step = totp.matching_step(secret, digits, rt.clock.now(), after=getattr(factor, purpose))
    if step is None:
        raise MfaCodeInvalid
    return TotpProof(factor, step, purpose)


def check_recovery_code(rt: Runtime, user_id: int, code: str) -> MfaRecoveryCode:
    """Check a recovery code.

    Raises: MfaCodeInvalid; MfaRecoveryCodeUsed for a correct one already used.
    """
    typed = recovery_codes.normalised(code)
    if typed is None:
        raise MfaCodeInvalid
    with rt.reading() as session:
        stored = queries.list_codes(session, user_id)
    matches = recovery_codes.matches_hash
    # All are compared, so timing reveals no position.
    found = [each for each in stored if matches(rt.secret_box, user_id, typed, each.code_hash)]
    if not found:
        raise MfaCodeInvalid
    if found[0].used_at is not None:
        raise MfaRecoveryCodeUsed
    return found[0]


def consume(rt: Runtime, session: Session, account: Account, proof: Proof) -> None:
    """Use up a code in the transaction of what it authorises.

    Raises: MfaCodeInvalid, MfaRecoveryCodeUsed if another request was faster.
    """
    now = rt.clock.now()
    if isinstance(proof, TotpProof):
        if not queries.consume_step(session, proof.factor, proof.purpose, proof.step, now):
            raise MfaCodeInvalid
    elif proof is not None:
        if not queries.consume_code(session, proof, now):
            raise MfaRecoveryCodeUsed
        users.notify_owner(rt, session, account, Notice.RECOVERY_CODE_USED)


def store_codes(rt: Runtime, session: Session, user_id: int, codes: Sequence[str]) -> None:
    """Replace all recovery codes of an account by these, given in display form."""
    hashes = [recovery_codes.hash_code(rt.secret_box, user_id, code) for code in codes]
    queries.replace_codes(session, user_id, hashes)


def remove(rt: Runtime, session: Session, account: Account) -> int:
    """Remove an account's factors and recovery codes and notify its owner; return the factor count.

    The caller must also discard its flows, after the commit.
    """
    removed = queries.remove_all(session, account.id)
    if removed:
        users.notify_owner(rt, session, account, Notice.FACTOR_REMOVED)
    return removed


def record(
    rt: Runtime,
    session: Session,
    action: Action,
    factor: MfaFactor,
    client: Client,
    **details: object,
) -> None:
    """Record in the audit log what happened to a factor, in the caller's transaction."""
    event = Event(
        action,
        EntityType.MFA_FACTOR,
        client=client,
        user_id=factor.user_id,
        entity_id=factor.id,
        entity_name=factor.name,
        details={"method": factor.method, **details},
    )
    audit.record(rt, session, event)


def secret_row_name(user_id: int) -> str:
    """Return the row name that an account's TOTP secret is sealed for."""
    return f"mfa_factor:{user_id}"


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt the secrets of TOTP factors under the newest key.

    A secret that cannot be decrypted is left alone: a restored key may still open it. Recovery
    codes are stored only as hashes, which stay, and are verified, under the key that made them.
    """
    resealer, changed, last_id = Resealer(rt.secret_box), 0, 0
    while batch := queries.list_next(session, last_id, bulk.BATCH_ROWS):
        for factor in batch:
            fresh = resealer.resealed(factor.secret, secret_row_name(factor.user_id))
            if fresh is not None:
                changed += queries.replace_secret(session, factor.id, factor.secret, fresh)
            last_id = factor.id
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count the secrets of TOTP factors, and unused recovery codes, by the key they need."""
    use.add_column(rt.secret_box, session, MfaFactor.secret, MfaFactor.user_id, secret_row_name)
    unused = MfaRecoveryCode.used_at.is_(None)
    use.add_hashes(rt.secret_box, session, MfaRecoveryCode.code_hash, unused)


def _takes_email_code(rt: Runtime, account: Account, *, has_totp: bool) -> bool:
    if account.email_verified_at is None or not rt.settings.get(keys.EMAIL_CODE_LOGIN_ENABLED):
        return False
    if has_totp and not rt.settings.get(keys.EMAIL_CODE_TOTP_FALLBACK):
        return False
    return mail.is_smtp_configured(rt)
