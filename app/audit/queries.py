"""Statements on the audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.audit.models import AuditEntry
from app.core.database import bulk
from app.core.database.database import Reader


@dataclass(frozen=True)
class Filter:
    """Filter for entries; None matches all. `since` is inclusive, `until` exclusive."""

    user_id: int | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def add(session: Session, **columns: Any) -> None:
    """Insert an entry."""
    session.execute(insert(AuditEntry).values(**columns))


def list_newest(reader: Reader, wanted: Filter, most: int) -> Sequence[Any]:
    """Return up to `most` matching entries, newest first."""
    statement = select(*AuditEntry.__table__.columns)
    if wanted.user_id is not None:
        statement = statement.where(AuditEntry.user_id == wanted.user_id)
    if wanted.action is not None:
        statement = statement.where(AuditEntry.action == wanted.action)
    if wanted.since is not None:
        statement = statement.where(AuditEntry.created_at >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(AuditEntry.created_at < wanted.until)
    newest_first = AuditEntry.created_at.desc(), AuditEntry.id.desc()
    return reader.execute(statement.order_by(*newest_first).limit(most)).all()


def delete_older(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` entries made before a time; return how many."""
    outdated = select(AuditEntry.id).where(AuditEntry.created_at < before).limit(most)
    return bulk.change(session, delete(AuditEntry).where(AuditEntry.id.in_(outdated)))
