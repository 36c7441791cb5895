"""Second factors as a login needs them: which there are, whether a code is right, using it up.

Invariant: checking uses nothing up. What makes a code good only once is a conditional statement
inside the transaction of what the code is for: `login_use`, or `use_up`.
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
from app.mfa.queries import Code, Totp
from app.sessions.opening import OneTimeUse
from app.settings import keys
from app.users import notices
from app.users.models import Account


class Purpose(StrEnum):
    """What a code is typed for; a TOTP code is good once for each (decision A15)."""

    LOGIN = "login"
    MANAGEMENT = "management"


@dataclass(frozen=True)
class TotpProof:
    """A right code of the app that is not used up yet: its time step, and the app as it was read.

    `used_meanwhile` is, as with the other proofs, what to answer when another request was faster.
    """

    factor: Totp = field(repr=False)
    step: int
    used_meanwhile: ClassVar[type[AppError]] = MfaCodeInvalid


@dataclass(frozen=True)
class RecoveryCodeProof:
    """A right recovery code that is not used up yet, as it is stored."""

    code: Code = field(repr=False)
    used_meanwhile: ClassVar[type[AppError]] = MfaRecoveryCodeUsed


@dataclass(frozen=True)
class EmailCodeProof:
    """A right code by e-mail, which no row of the account knows of: it ends with its login."""

    used_meanwhile: ClassVar[type[AppError]] = MfaFlowInvalid


StoredProof = TotpProof | RecoveryCodeProof
Proof = StoredProof | EmailCodeProof


def methods(rt: Runtime, account: Account) -> tuple[MfaMethod, ...]:
    """Return the methods open to an account now; empty: it owes no second factor.

    Source: spec, Endpoint rules 4; spec 02 §1.1.
    """
    held = queries.find_held(rt.database, account.id)
    is_open = {
        MfaMethod.TOTP: held is not None,
        MfaMethod.RECOVERY_CODE: held is not None and held.has_recovery_code,
        MfaMethod.EMAIL_CODE: _takes_email_code(rt, account, has_totp=held is not None),
    }
    return tuple(method for method in MfaMethod if is_open[method])


def check_totp(
    rt: Runtime, factor: Totp, digits: str, *, purpose: Purpose = Purpose.LOGIN
) -> TotpProof:
    """Check the six digits of a code of the authenticator app.

    Raises: MfaCodeInvalid, also for one that was accepted for this purpose before;
    SecretUnreadable, and then nothing was checked.
    """
    secret = rt.secret_box.open(factor.secret, sealed_for(factor.user_id))
    is_login = purpose is Purpose.LOGIN
    last_step = factor.last_login_step if is_login else factor.last_management_step
    step = totp.matching_step(secret, digits, rt.clock.now(), after=last_step)
    if step is None:
        raise MfaCodeInvalid
    return TotpProof(factor, step)


def check_recovery_code(rt: Runtime, user_id: int, code: str) -> RecoveryCodeProof:
    """Check a recovery code.

    Raises: MfaCodeInvalid; MfaRecoveryCodeUsed for one that was right once (decision A16).
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


def login_use(rt: Runtime, proof: TotpProof) -> OneTimeUse:
    """Return what a login with this code of the app uses up; it also marks the app as just used."""
    return queries.login_use(proof.factor, proof.step, rt.clock.now())


def use_up(rt: Runtime, session: Session, user_id: int, proof: StoredProof) -> bool:
    """Use up a recovery code, or a code of the app for managing factors, within a larger change.

    False if another request was faster.
    """
    if isinstance(proof, RecoveryCodeProof):
        return queries.use_code(session, user_id, proof.code, rt.clock.now())
    return queries.accept_for_management(session, proof.factor, proof.step)


def store_codes(rt: Runtime, session: Session, user_id: int, codes: Sequence[str]) -> None:
    """Put recovery codes, as they are shown, in the place of all an account has."""
    hashes = [recovery_codes.stored(rt.secret_box, user_id, code) for code in codes]
    queries.replace_codes(session, user_id, hashes)


def remove(rt: Runtime, session: Session, account: Account) -> int:
    """Remove every factor and recovery code of an account, and tell it; return how many factors.

    The caller also discards its flows, after the commit.
    """
    removed = queries.remove_all(session, account.id)
    if removed:
        notices.tell(rt, session, account, Notice.FACTOR_REMOVED)
    return removed


def sealed_for(user_id: int) -> str:
    """Return the name under which the secret of an account's TOTP factor is sealed."""
    return f"mfa_factor:{user_id}"


def _takes_email_code(rt: Runtime, account: Account, *, has_totp: bool) -> bool:
    if account.email_verified_at is None or not rt.settings.get(keys.EMAIL_CODE_LOGIN_ENABLED):
        return False
    if has_totp and not rt.settings.get(keys.EMAIL_CODE_TOTP_FALLBACK):
        return False
    return mail.is_smtp_configured(rt)


def _matching(rt: Runtime, user_id: int, typed: str, stored: Sequence[Code]) -> Code | None:
    """Return the stored code that was typed; every one is looked at, wherever the match is."""
    box = rt.secret_box
    matching = [
        code for code in stored if recovery_codes.is_stored_as(box, user_id, typed, code.code_hash)
    ]
    return matching[0] if matching else None
