"""Statements on the audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, insert, select
from sqlalchemy.orm import Session

from app.audit.models import AuditEntry
from app.core import bulk
from app.core.prepared import Prepared

Reader = Connection | Session

_INSERT = insert(AuditEntry).inline()
ENTRY_COLUMNS = (
    "user_id",
    "action",
    "entity_type",
    "entity_id",
    "entity_name",
    "details",
    "ip_address",
    "user_agent",
    "created_at",
)


@dataclass(frozen=True)
class Filter:
    """Which entries are asked for; None asks for all. `since` belongs to the span, `until` not."""

    user_id: int | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def add_if(condition: ColumnElement[bool], *parameters: str) -> Prepared:
    """Return the statement that inserts an entry where a condition holds.

    It takes the values of ENTRY_COLUMNS, then those of the condition's parameters.
    """
    values = [bindparam(name, type_=AuditEntry.__table__.c[name].type) for name in ENTRY_COLUMNS]
    statement = insert(AuditEntry).from_select(ENTRY_COLUMNS, select(*values).where(condition))
    return Prepared(statement, (*ENTRY_COLUMNS, *parameters))


def add(session: Session, **columns: Any) -> None:
    """Insert an entry."""
    session.connection().execute(_INSERT, columns)


def list_newest(reader: Reader, wanted: Filter, most: int) -> Sequence[Any]:
    """Return up to `most` entries, the newest first."""
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
    """Delete up to `most` entries made before a moment; return how many."""
    outdated = select(AuditEntry.id).where(AuditEntry.created_at < before).limit(most)
    return bulk.count_changed(session, delete(AuditEntry).where(AuditEntry.id.in_(outdated)))
