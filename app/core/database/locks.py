"""Locks for decisions that no unique constraint can make.

Named locks are rows, for decisions about a whole table ("is there an admin?"). Any text can be
locked as well (an advisory lock), for decisions about one value that may be in several columns.
"""

import hashlib

from sqlalchemy import BigInteger, String, bindparam, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from app.core.database.database import Database
from app.core.database.prepared import Prepared, Step, run_within
from app.core.db import Base

SETUP = "setup"
# For every change of settings, providers and secret keys, as their rules depend on one another.
SETTINGS = "login_methods"  # named after the first of those rules
STORAGE_TOPOLOGY = "storage_topology"

_HOLD_NUMBER = Prepared(
    select(func.pg_advisory_xact_lock(bindparam("number", type_=BigInteger))), ("number",)
)


class NamedLock(Base):
    """One lock; the rows are inserted by a migration."""

    __tablename__ = "named_locks"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)


def hold(session: Session, name: str) -> None:
    """Wait until no other transaction holds this lock, then hold it until this one ends.

    SQLite has one writer at a time anyway and ignores FOR UPDATE.
    """
    session.execute(select(NamedLock.name).where(NamedLock.name == name).with_for_update()).one()


def hold_text(session: Session, text: str) -> None:
    """Like `hold`, for any text; two texts share a lock once in 2^64 times, which only delays."""
    if session.get_bind().dialect.name == "postgresql":
        run_within(session, _holding(text))


def hold_text_steps(database: Database, text: str) -> list[Step]:
    """Return `hold_text` as a step; none on SQLite, where the whole transaction is exclusive."""
    return [] if database.is_sqlite else [_holding(text)]


def _holding(text: str) -> Step:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)
    return _HOLD_NUMBER.step(number=number)
