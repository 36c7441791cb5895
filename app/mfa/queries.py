"""Statements on second factors."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.core.database import bulk
from app.core.database.prepared import Prepared
from app.mfa.models import MfaFactor, MfaMethod, MfaRecoveryCode
from app.sessions import opening
from app.sessions.opening import OneTimeUse
from app.users.models import User


def _is_before(column: InstrumentedAttribute[int | None], step: Any) -> ColumnElement[bool]:
    return or_(column.is_(None), column < step)


_OPEN_WITH_TOTP = opening.if_unchanged(
    MfaFactor.user_id == User.id,
    MfaFactor.id == bindparam("factor_id"),
    MfaFactor.enabled_at == bindparam("enabled_at"),
    _is_before(MfaFactor.last_login_step, bindparam("step")),
    parameters=("factor_id", "enabled_at", "step"),
    locked=(MfaFactor,),
)
_USE_STEP = Prepared(
    update(MfaFactor)
    .where(MfaFactor.id == bindparam("factor_id"), opening.session_exists())
    .values(
        last_login_step=bindparam("step", type_=MfaFactor.last_login_step.type),
        last_used_at=bindparam("used_at", type_=MfaFactor.last_used_at.type),
    ),
    ("step", "used_at", "factor_id", "session_id"),
)


def find_totp(session: Session, user_id: int) -> MfaFactor | None:
    """Return the account's authenticator app, the only kind of factor that has a row."""
    return session.scalar(select(MfaFactor).where(MfaFactor.user_id == user_id))


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


def one_time_login_use(factor: MfaFactor, step: int, now: datetime) -> OneTimeUse:
    """Return what opening a session with a TOTP code consumes: its time step.

    No session opens if that step or a later one was already used, so of concurrent logins with one
    code exactly one succeeds.
    """
    which = {"factor_id": factor.id, "step": step}
    used = [(_USE_STEP, {**which, "used_at": now})]
    return OneTimeUse(_OPEN_WITH_TOTP, {**which, "enabled_at": factor.enabled_at}, used)


def consume_management_step(session: Session, factor: MfaFactor, step: int) -> bool:
    """Consume a time step for managing factors; False if it or a later one was already used."""
    statement = update(MfaFactor).where(
        MfaFactor.id == factor.id,
        MfaFactor.user_id == factor.user_id,
        # Distinguishes it from a later factor with the same id, since SQLite reuses ids. The sealed
        # secret could not: it is sealed anew when keys rotate.
        MfaFactor.enabled_at == factor.enabled_at,
        _is_before(MfaFactor.last_management_step, step),
    )
    return bulk.change(session, statement.values(last_management_step=step)) == 1


def consume_code(session: Session, code: MfaRecoveryCode, now: datetime) -> bool:
    """Consume a recovery code; False if it was already used, or replaced meanwhile."""
    statement = update(MfaRecoveryCode).where(
        MfaRecoveryCode.id == code.id,
        MfaRecoveryCode.user_id == code.user_id,
        MfaRecoveryCode.code_hash == code.code_hash,
        MfaRecoveryCode.used_at.is_(None),
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
