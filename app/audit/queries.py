"""Statements on the audit log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, insert, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.audit.models import AuditEntry
from app.core.database import bulk
from app.core.database.database import Reader
from app.core.database.prepared import Prepared, Step
from app.core.db import Base

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
    """Filter for entries; None matches all. `since` is inclusive, `until` exclusive."""

    user_id: int | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def add_if(
    condition: ColumnElement[bool],
    *parameters: str,
    account: InstrumentedAttribute[int] | None = None,
    locks: type[Base] | None = None,
) -> Prepared:
    """Return a statement that inserts an entry if a condition holds.

    It takes the values of ENTRY_COLUMNS, then those of the condition's `parameters`. If `account`
    is given, an id column of the rows that the condition matches, user_id and entity_id come from
    there instead. `locks` is a table whose matching row is to be locked until the commit.
    """
    values: list[Any] = []
    given = []
    for name in ENTRY_COLUMNS:
        if account is not None and name in {"user_id", "entity_id"}:
            values.append(account)
        else:
            values.append(bindparam(name, type_=AuditEntry.__table__.c[name].type))
            given.append(name)
    source = select(*values).where(condition)
    if locks is not None:
        source = source.with_for_update(of=locks)
    statement = insert(AuditEntry).from_select(ENTRY_COLUMNS, source)
    return Prepared(statement, (*given, *parameters))


def entry_steps(
    statement: Prepared, entry: Mapping[str, Any] | None, **parameters: Any
) -> list[Step]:
    """Return the step that runs a statement of `add_if` for an entry; no step if it is None.

    `parameters` are the values for the statement's condition.
    """
    if entry is None:
        return []
    values = {**entry, **parameters}
    for name in {"user_id", "entity_id"}.difference(statement.parameters):
        del values[name]  # the statement finds the account itself
    return [statement.step(**values)]


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
