"""Statements on runtime settings."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.settings.models import SystemConfig


def list_texts(session: Session) -> dict[str, str]:
    """Return every stored text by key."""
    rows = session.execute(select(SystemConfig.key, SystemConfig.value))
    return {row.key: row.value for row in rows if row.value is not None}


def list_times(session: Session, names: Collection[str]) -> list[datetime]:
    """Return when these settings were last changed, of those that ever were."""
    changed = select(SystemConfig.updated_at).where(SystemConfig.key.in_(names))
    return list(session.scalars(changed))


def find(session: Session, name: str) -> SystemConfig | None:
    """Return the row of one setting; None if it was never set."""
    return session.scalar(select(SystemConfig).where(SystemConfig.key == name))


def store(
    session: Session, name: str, text: str | None, now: datetime, user_id: int | None = None
) -> None:
    """Insert or replace one stored text; the caller calls `service.announce` after the commit.

    A text of None returns the setting to its default. `user_id` is the account that does it, None
    for the command line and the service itself.
    """
    row = find(session, name) or SystemConfig(key=name)
    row.value, row.updated_at, row.updated_by = text, now, user_id
    session.add(row)


def reseal(session: Session, name: str, text: str) -> None:
    """Replace a stored text by the same secret under another key; nobody has set it anew."""
    session.execute(update(SystemConfig).where(SystemConfig.key == name).values(value=text))


def remove(session: Session, name: str) -> None:
    """Delete the row of a setting."""
    session.execute(delete(SystemConfig).where(SystemConfig.key == name))
