"""Second factors: which methods are available, whether a code is right, and consuming it.

Invariant: checking consumes nothing. A code works only once because a conditional statement
consumes it in the transaction of what it authorises: see `consume_for_login` and `consume_proof`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.client import Client
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.mail import service as mail
from app.mfa import queries, recovery_codes, totp
from app.mfa.errors import MfaCodeInvalid, MfaFlowInvalid, MfaRecoveryCodeUsed
from app.mfa.models import MfaFactor, MfaMethod, MfaRecoveryCode
from app.settings import keys
from app.users import notices
from app.users.models import Account


class Notice(StrEnum):
    """What is mailed to an account's owner: the sentence that says what happened."""

    FACTOR_ADDED = "An authenticator app was added. Signing in now also asks for its code."
    FACTOR_REMOVED = (
        "The authenticator app was removed, and the recovery codes with it. "
        "Signing in no longer asks for a code of the app."
    )
    RECOVERY_CODE_USED = "One of your recovery codes was just used. It cannot be used again."
    RECOVERY_CODES_REGENERATED = (
        "New recovery codes were made. The old ones cannot be used any more."
    )


class Purpose(StrEnum):
    """What a code is entered for; a TOTP code works once for each."""

    LOGIN = "login"
    MANAGEMENT = "management"


@dataclass(frozen=True)
class TotpProof:
    """A correct TOTP code, not yet consumed: its time step and the factor as it was read.

    `lost_race_error`, as in the other proofs, is the error to raise if a concurrent request was
    faster to consume it.
    """

    factor: MfaFactor = field(repr=False)
    step: int
    lost_race_error: ClassVar[type[AppError]] = MfaCodeInvalid


@dataclass(frozen=True)
class RecoveryCodeProof:
    """A correct recovery code, not yet consumed, as stored."""

    code: MfaRecoveryCode = field(repr=False)
    lost_race_error: ClassVar[type[AppError]] = MfaRecoveryCodeUsed


@dataclass(frozen=True)
class EmailCodeProof:
    """A correct e-mail code; it has no database row, and is consumed with its login flow."""

    lost_race_error: ClassVar[type[AppError]] = MfaFlowInvalid


StoredProof = TotpProof | RecoveryCodeProof
Proof = StoredProof | EmailCodeProof


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


def check_totp(
    rt: Runtime, factor: MfaFactor, digits: str, *, purpose: Purpose = Purpose.LOGIN
) -> TotpProof:
    """Check the six digits of a TOTP code.

    Raises: MfaCodeInvalid, also for a replay of one accepted for this purpose before;
    SecretUnreadable, in which case nothing was checked.
    """
    secret = rt.secret_box.open(factor.secret, secret_row_name(factor.user_id))
    is_login = purpose is Purpose.LOGIN
    last_step = factor.last_login_step if is_login else factor.last_management_step
    step = totp.matching_step(secret, digits, rt.clock.now(), after=last_step)
    if step is None:
        raise MfaCodeInvalid
    return TotpProof(factor, step)


def check_recovery_code(rt: Runtime, user_id: int, code: str) -> RecoveryCodeProof:
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
    return RecoveryCodeProof(found[0])


def consume_for_login(rt: Runtime, session: Session, account: Account, proof: Proof) -> None:
    """Use up a code in the transaction that opens the session of a login.

    Raises: the proof's `lost_race_error` if another request was faster.
    """
    now = rt.clock.now()
    if isinstance(proof, TotpProof):
        is_ours = queries.consume_login_step(session, proof.factor, proof.step, now)
    elif isinstance(proof, RecoveryCodeProof):
        is_ours = queries.consume_code(session, proof.code, now)
        notices.notify_owner(rt, session, account, Notice.RECOVERY_CODE_USED)
    else:
        is_ours = True  # consumed with the login, in Redis
    if not is_ours:
        raise proof.lost_race_error


def consume_proof(rt: Runtime, session: Session, proof: StoredProof) -> bool:
    """Consume a recovery code, or a TOTP code for managing factors, in the caller's transaction.

    False if another request was faster.
    """
    if isinstance(proof, RecoveryCodeProof):
        return queries.consume_code(session, proof.code, rt.clock.now())
    return queries.consume_management_step(session, proof.factor, proof.step)


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
        notices.notify_owner(rt, session, account, Notice.FACTOR_REMOVED)
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


def _takes_email_code(rt: Runtime, account: Account, *, has_totp: bool) -> bool:
    if account.email_verified_at is None or not rt.settings.get(keys.EMAIL_CODE_LOGIN_ENABLED):
        return False
    if has_totp and not rt.settings.get(keys.EMAIL_CODE_TOTP_FALLBACK):
        return False
    return mail.is_smtp_configured(rt)
