"""Statements on runtime settings."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.core.database.database import Reader
from app.settings.models import SystemConfig


class Stored(NamedTuple):
    """The stored text of a setting, and when it was last written."""

    text: str
    updated_at: datetime


def list_texts(reader: Reader) -> Mapping[str, str]:
    """Return every stored text by key."""
    rows = reader.execute(select(SystemConfig.key, SystemConfig.value))
    return {row.key: row.value for row in rows}


def list_stored(reader: Reader) -> dict[str, Stored]:
    """Return every stored setting by key."""
    rows = reader.execute(select(SystemConfig.key, SystemConfig.value, SystemConfig.updated_at))
    return {row.key: Stored(row.value, row.updated_at) for row in rows}


def find(reader: Reader, name: str) -> Stored | None:
    """Return the stored value of one setting; None if it is not set."""
    statement = select(SystemConfig.value, SystemConfig.updated_at).where(SystemConfig.key == name)
    row = reader.execute(statement).one_or_none()
    return Stored(*row) if row else None


def store(session: Session, name: str, text: str, now: datetime) -> None:
    """Insert or replace one stored text; the caller calls `service.announce` after the commit."""
    values = {"value": text, "updated_at": now}
    changed = session.execute(
        update(SystemConfig)
        .where(SystemConfig.key == name)
        .values(**values)
        .returning(SystemConfig.id)
    ).one_or_none()
    if changed is None:
        session.add(SystemConfig(key=name, **values))


def remove(session: Session, name: str) -> None:
    """Delete a stored text."""
    session.execute(delete(SystemConfig).where(SystemConfig.key == name))
