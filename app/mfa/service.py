"""Second factors: which methods are available, whether a code is right, and consuming it.

Invariant: checking consumes nothing. A code works only once because a conditional statement
consumes it in the transaction of what it authorises: see `one_time_login_use` and `consume_proof`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from sqlalchemy.orm import Session

from app.core.errors import AppError
from app.core.runtime import Runtime
from app.mail import service as mail
from app.mfa import queries, recovery_codes, totp
from app.mfa.errors import MfaCodeInvalid, MfaFlowInvalid, MfaRecoveryCodeUsed
from app.mfa.models import MfaMethod
from app.mfa.notices import Notice
from app.mfa.queries import RecoveryCode, TotpFactor
from app.sessions.opening import OneTimeUse
from app.settings import keys
from app.users import notices
from app.users.models import Account


class Purpose(StrEnum):
    """What a code is entered for; a TOTP code works once for each (decision A15)."""

    LOGIN = "login"
    MANAGEMENT = "management"


@dataclass(frozen=True)
class TotpProof:
    """A correct TOTP code, not yet consumed: its time step and the factor as it was read.

    `lost_race_error`, as in the other proofs, is the error to raise if a concurrent request was
    faster to consume it.
    """

    factor: TotpFactor = field(repr=False)
    step: int
    lost_race_error: ClassVar[type[AppError]] = MfaCodeInvalid


@dataclass(frozen=True)
class RecoveryCodeProof:
    """A correct recovery code, not yet consumed, as stored."""

    code: RecoveryCode = field(repr=False)
    lost_race_error: ClassVar[type[AppError]] = MfaRecoveryCodeUsed


@dataclass(frozen=True)
class EmailCodeProof:
    """A correct e-mail code; it has no database row, and is consumed with its login flow."""

    lost_race_error: ClassVar[type[AppError]] = MfaFlowInvalid


StoredProof = TotpProof | RecoveryCodeProof
Proof = StoredProof | EmailCodeProof


def methods(rt: Runtime, account: Account) -> tuple[MfaMethod, ...]:
    """Return the methods available to an account now; empty if it needs no second factor.

    Source: spec, Endpoint rules 4; spec 02 §1.1.
    """
    factor = queries.find_factor_summary(rt.database, account.id)
    is_open = {
        MfaMethod.TOTP: factor is not None,
        MfaMethod.RECOVERY_CODE: factor is not None and factor.has_recovery_code,
        MfaMethod.EMAIL_CODE: _takes_email_code(rt, account, has_totp=factor is not None),
    }
    return tuple(method for method in MfaMethod if is_open[method])


def check_totp(
    rt: Runtime, factor: TotpFactor, digits: str, *, purpose: Purpose = Purpose.LOGIN
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

    Raises: MfaCodeInvalid; MfaRecoveryCodeUsed for a correct one already used (decision A16).
    """
    typed = recovery_codes.normalised(code)
    if typed is None:
        raise MfaCodeInvalid
    found = _matching(rt, user_id, typed, queries.list_codes(rt.database, user_id))
    if found is None:
        raise MfaCodeInvalid
    if found.used_at is not None:
        raise MfaRecoveryCodeUsed
    return RecoveryCodeProof(found)


def one_time_login_use(rt: Runtime, proof: TotpProof) -> OneTimeUse:
    """Return what a login with this TOTP code consumes; it also marks the factor as just used."""
    return queries.one_time_login_use(proof.factor, proof.step, rt.clock.now())


def consume_proof(rt: Runtime, session: Session, user_id: int, proof: StoredProof) -> bool:
    """Consume a recovery code, or a TOTP code for managing factors, in the caller's transaction.

    False if another request was faster.
    """
    if isinstance(proof, RecoveryCodeProof):
        return queries.consume_code(session, user_id, proof.code, rt.clock.now())
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


def secret_row_name(user_id: int) -> str:
    """Return the row name that an account's TOTP secret is sealed for."""
    return f"mfa_factor:{user_id}"


def _takes_email_code(rt: Runtime, account: Account, *, has_totp: bool) -> bool:
    if account.email_verified_at is None or not rt.settings.get(keys.EMAIL_CODE_LOGIN_ENABLED):
        return False
    if has_totp and not rt.settings.get(keys.EMAIL_CODE_TOTP_FALLBACK):
        return False
    return mail.is_smtp_configured(rt)


def _matching(
    rt: Runtime, user_id: int, typed: str, stored: Sequence[RecoveryCode]
) -> RecoveryCode | None:
    """Return the stored code that was typed; all are compared, so timing reveals no position."""
    box = rt.secret_box
    matching = [
        code for code in stored if recovery_codes.matches_hash(box, user_id, typed, code.code_hash)
    ]
    return matching[0] if matching else None
