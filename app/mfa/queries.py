"""Statements on second factors."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.core.database import bulk
from app.core.database.database import Database
from app.core.database.lookups import Lookup
from app.core.database.prepared import Prepared
from app.core.db import columns_of
from app.mfa.models import MfaFactor, MfaMethod, MfaRecoveryCode
from app.sessions import opening
from app.sessions.opening import OneTimeUse
from app.users.models import ACCOUNT_COLUMNS, Account, User, with_profile


class TotpFactor(NamedTuple):
    """The TOTP factor of an account, its secret sealed.

    `enabled_at` distinguishes it from a later factor with the same id, since SQLite reuses ids. The
    sealed secret could not: it is re-encrypted when keys rotate.
    """

    id: int
    user_id: int
    enabled_at: datetime
    secret: str
    last_login_step: int | None
    last_management_step: int | None


class RecoveryCode(NamedTuple):
    """A recovery code as stored; `used_at` is None until it is used."""

    id: int
    code_hash: str
    used_at: datetime | None


_UNUSED = (MfaRecoveryCode.user_id == MfaFactor.user_id, MfaRecoveryCode.used_at.is_(None))
_SUMMARY = Lookup(
    select(MfaFactor.id, exists(select(MfaRecoveryCode.id).where(*_UNUSED))), MfaFactor.user_id
)
_TOTP_COLUMNS = columns_of(TotpFactor, MfaFactor)
_TOTP = Lookup(select(*_TOTP_COLUMNS), MfaFactor.user_id)
_ACCOUNT_WITH_TOTP = Lookup(
    with_profile(select(*_TOTP_COLUMNS, *ACCOUNT_COLUMNS).select_from(User)).outerjoin(
        MfaFactor, MfaFactor.user_id == User.id
    ),
    User.id,
)
_CODES = Lookup(select(*columns_of(RecoveryCode, MfaRecoveryCode)), MfaRecoveryCode.user_id)


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
_REMAINING = select(func.count(MfaRecoveryCode.id)).where(*_UNUSED).scalar_subquery()
_LISTED = Lookup(
    select(
        MfaFactor.id,
        MfaFactor.method,
        MfaFactor.name,
        MfaFactor.enabled_at,
        MfaFactor.last_used_at,
        _REMAINING,
    ),
    MfaFactor.user_id,
)


class FactorSummary(NamedTuple):
    """Which methods an account's TOTP factor allows at a login."""

    factor_id: int
    has_recovery_code: bool


class ListedFactor(NamedTuple):
    """A factor as its owner sees it."""

    id: int
    method: str
    name: str
    enabled_at: datetime
    last_used_at: datetime | None
    recovery_codes_remaining: int


def find_factor_summary(database: Database, user_id: int) -> FactorSummary | None:
    """Return what the account's TOTP factor allows; None if it has none."""
    row = database.lookup(_SUMMARY, user_id)
    return FactorSummary(*row) if row else None


def find_totp(database: Database, user_id: int) -> TotpFactor | None:
    """Return the account's TOTP factor; None if it has none."""
    row = database.lookup(_TOTP, user_id)
    return TotpFactor(*row) if row else None


def find_account_with_totp(
    database: Database, user_id: int
) -> tuple[Account | None, TotpFactor | None]:
    """Return an account and its TOTP factor, each None if it does not exist."""
    row = database.lookup(_ACCOUNT_WITH_TOTP, user_id)
    if row is None:
        return None, None
    mine = len(_TOTP_COLUMNS)
    return Account(*row[mine:]), TotpFactor(*row[:mine]) if row[0] is not None else None


def list_codes(database: Database, user_id: int) -> list[RecoveryCode]:
    """Return the recovery codes of an account, used ones included."""
    return [RecoveryCode(*row) for row in database.lookup_all(_CODES, user_id)]


def list_factors(database: Database, user_id: int) -> list[ListedFactor]:
    """Return the factors of an account, ordered by id."""
    return sorted(ListedFactor(*row) for row in database.lookup_all(_LISTED, user_id))


def find_factor(session: Session, user_id: int, factor_id: int) -> ListedFactor | None:
    """Return a factor of this account; None if it has none with this id."""
    statement = _LISTED.statement.where(MfaFactor.user_id == user_id, MfaFactor.id == factor_id)
    row = session.execute(statement).one_or_none()
    return ListedFactor(*row) if row else None


def get_factor(session: Session, user_id: int) -> ListedFactor:
    """Return the only factor of an account, which must have one."""
    statement = _LISTED.statement.where(MfaFactor.user_id == user_id)
    return ListedFactor(*session.execute(statement).one())


def has_factor(session: Session, user_id: int) -> bool:
    """Return whether the account has a factor."""
    statement = select(exists(select(MfaFactor.id).where(MfaFactor.user_id == user_id)))
    return bool(session.execute(statement).scalar())


def add_totp(session: Session, user_id: int, *, name: str, secret: str, now: datetime) -> int:
    """Insert a TOTP factor and return its id; `secret` is sealed."""
    statement = insert(MfaFactor).values(
        user_id=user_id, method=MfaMethod.TOTP, name=name, secret=secret, enabled_at=now
    )
    return session.execute(statement.returning(MfaFactor.id)).scalar_one()


def one_time_login_use(factor: TotpFactor, step: int, now: datetime) -> OneTimeUse:
    """Return what opening a session with a TOTP code consumes: its time step.

    No session opens if that step or a later one was already used, so of concurrent logins with one
    code exactly one succeeds (decision A15).
    """
    which = {"factor_id": factor.id, "step": step}
    used = [(_USE_STEP, {**which, "used_at": now})]
    return OneTimeUse(_OPEN_WITH_TOTP, {**which, "enabled_at": factor.enabled_at}, used)


def consume_management_step(session: Session, factor: TotpFactor, step: int) -> bool:
    """Consume a time step for managing factors; False if it or a later one was already used."""
    statement = update(MfaFactor).where(
        MfaFactor.id == factor.id,
        MfaFactor.user_id == factor.user_id,
        MfaFactor.enabled_at == factor.enabled_at,
        _is_before(MfaFactor.last_management_step, step),
    )
    return bulk.change(session, statement.values(last_management_step=step)) == 1


def consume_code(session: Session, user_id: int, code: RecoveryCode, now: datetime) -> bool:
    """Consume a recovery code; False if it was already used, or replaced meanwhile."""
    statement = update(MfaRecoveryCode).where(
        MfaRecoveryCode.id == code.id,
        MfaRecoveryCode.user_id == user_id,
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
    statement = delete(MfaFactor).where(MfaFactor.user_id == user_id)
    return bulk.change(session, statement)


def list_sealed(session: Session, after_id: int, most: int) -> list[tuple[int, int, str]]:
    """Return id, user id and sealed secret of the next `most` factors with ids above `after_id`."""
    statement = select(MfaFactor.id, MfaFactor.user_id, MfaFactor.secret)
    page = statement.where(MfaFactor.id > after_id).order_by(MfaFactor.id).limit(most)
    return [(row[0], row[1], row[2]) for row in session.execute(page)]


def replace_secret(session: Session, factor_id: int, old: str, new: str) -> bool:
    """Store the re-encrypted secret; False if the factor was removed or changed meanwhile."""
    same = MfaFactor.id == factor_id, MfaFactor.secret == old
    return bulk.change(session, update(MfaFactor).where(*same).values(secret=new)) == 1


def _delete_codes(session: Session, user_id: int) -> None:
    bulk.change(session, delete(MfaRecoveryCode).where(MfaRecoveryCode.user_id == user_id))
