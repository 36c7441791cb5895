"""Locks for decisions that no unique constraint can make.

Named locks are rows, for decisions about a whole table ("is there an admin?"). Any text can be
locked as well (an advisory lock), for decisions about one value that may be in several columns.
"""

import hashlib

from sqlalchemy import String, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from app.store.db import Base

SETUP = "setup"
# For every change of settings, providers and secret keys, as their rules depend on one another.
SETTINGS = "login_methods"  # named after the first of those rules
STORAGE_TOPOLOGY = "storage_topology"


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
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)
        session.execute(select(func.pg_advisory_xact_lock(number)))
