"""Statements on second factors."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from app.mfa import totp
from app.mfa.models import CodePurpose, MfaFactor, MfaMethod, MfaRecoveryCode
from app.store import bulk

_TOTP = select(MfaFactor).where(MfaFactor.user_id == bindparam("user_id"))


def find_totp(session: Session, user_id: int) -> MfaFactor | None:
    """Return the account's authenticator app, the only kind of factor that has a row."""
    return session.scalar(_TOTP, {"user_id": user_id})


def list_codes(session: Session, user_id: int) -> Sequence[MfaRecoveryCode]:
    """Return the recovery codes of an account, used ones included."""
    return session.scalars(select(MfaRecoveryCode).where(MfaRecoveryCode.user_id == user_id)).all()


def count_unused_codes(session: Session, user_id: int) -> int:
    """Return how many recovery codes the account has left."""
    unused = MfaRecoveryCode.user_id == user_id, MfaRecoveryCode.used_at.is_(None)
    return session.execute(select(func.count(MfaRecoveryCode.id)).where(*unused)).scalar_one()


def add_totp(session: Session, user_id: int, *, name: str, secret: str, now: datetime) -> MfaFactor:
    """Insert a TOTP factor; `secret` is sealed."""
    factor = MfaFactor(
        user_id=user_id, method=MfaMethod.TOTP, name=name, secret=secret, enabled_at=now
    )
    session.add(factor)
    session.flush()
    return factor


def consume_step(
    session: Session, factor: MfaFactor, purpose: CodePurpose, step: int, now: datetime
) -> bool:
    """Consume a time step for one purpose; False if it or a later one was already used.

    One later than any that can have been used by now does not count.
    """
    last = getattr(MfaFactor, purpose)
    is_unused = or_(last.is_(None), last < step, last > totp.newest_step(now))
    statement = update(MfaFactor).where(MfaFactor.id == factor.id, is_unused)
    if purpose is CodePurpose.LOGIN:
        statement = statement.values(last_used_at=now)
    return bulk.change(session, statement.values({last: step})) == 1


def consume_code(session: Session, code: MfaRecoveryCode, now: datetime) -> bool:
    """Consume a recovery code; False if it was already used, or replaced meanwhile."""
    statement = update(MfaRecoveryCode).where(
        MfaRecoveryCode.id == code.id, MfaRecoveryCode.used_at.is_(None)
    )
    return bulk.change(session, statement.values(used_at=now)) == 1


def replace_codes(session: Session, user_id: int, code_hashes: Iterable[str]) -> None:
    """Replace all recovery codes of an account, used ones included."""
    _delete_codes(session, user_id)
    rows = [{"user_id": user_id, "code_hash": code_hash} for code_hash in code_hashes]
    session.execute(insert(MfaRecoveryCode), rows)


def remove_all(session: Session, user_id: int) -> int:
    """Delete an account's factors and recovery codes; return the number of factors."""
    _delete_codes(session, user_id)
    return bulk.change(session, delete(MfaFactor).where(MfaFactor.user_id == user_id))


def list_next(session: Session, after_id: int, most: int) -> Sequence[MfaFactor]:
    """Return the next `most` factors with ids above `after_id`."""
    page = select(MfaFactor).where(MfaFactor.id > after_id).order_by(MfaFactor.id).limit(most)
    return session.scalars(page).all()


def replace_secret(session: Session, factor_id: int, old: str, new: str) -> bool:
    """Store the re-encrypted secret; False if the factor was removed or changed meanwhile."""
    same = MfaFactor.id == factor_id, MfaFactor.secret == old
    return bulk.change(session, update(MfaFactor).where(*same).values(secret=new)) == 1


def _delete_codes(session: Session, user_id: int) -> None:
    bulk.change(session, delete(MfaRecoveryCode).where(MfaRecoveryCode.user_id == user_id))
