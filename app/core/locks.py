"""Rows that exist to be locked, for decisions about a whole table ("is there an admin?")."""

from sqlalchemy import String, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from app.core.db import Base

SETUP = "setup"
LOGIN_METHODS = "login_methods"
STORAGE_TOPOLOGY = "storage_topology"


class NamedLock(Base):
    """One lock; the rows are put there by a migration."""

    __tablename__ = "named_locks"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)


def hold(session: Session, name: str) -> None:
    """Wait until no other transaction holds this lock, and hold it until this one ends.

    SQLite has one writer at a time anyway and ignores FOR UPDATE.
    """
    session.execute(select(NamedLock.name).where(NamedLock.name == name).with_for_update()).one()
