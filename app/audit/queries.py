"""Statements on the audit log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, literal, or_, select, tuple_
from sqlalchemy.orm import Session

from app.audit.models import Action, Actor, AuditEntry, EntityType
from app.store import bulk
from app.store.paging import Page, Paging, read_ids
from app.store.search import folded_column, has_part

_COLUMNS = [one for one in AuditEntry.__table__.columns if one.name != "entity_name_folded"]
_ADD = insert(AuditEntry)
# What the service does by itself; any other entry without account and address is a command's.
_OF_ITSELF = (
    Action.SERVER_START,
    Action.SERVER_SHUTDOWN,
    Action.MAIL_SEND,
    Action.MAIL_DELIVERY_FAILED,
)
_IS_COMMAND = and_(
    AuditEntry.user_id == 0,
    AuditEntry.ip_address.is_(None),
    AuditEntry.action.not_in(_OF_ITSELF),
)
_BY = {
    Actor.USER: AuditEntry.user_id != 0,
    Actor.CLI: _IS_COMMAND,
    Actor.SYSTEM: and_(AuditEntry.user_id == 0, ~_IS_COMMAND),
}
# Without NULL, which databases order differently and no comparison continues after.
SORT_COLUMNS: dict[str, Any] = {
    "id": AuditEntry.id,
    "created_at": AuditEntry.created_at,
    "user_id": AuditEntry.user_id,
    "action": AuditEntry.action,
    "entity_type": AuditEntry.entity_type,
    "entity_name": func.coalesce(AuditEntry.entity_name, ""),
    "ip_address": func.coalesce(AuditEntry.ip_address, ""),
}


@dataclass(frozen=True)
class EntryFilter:
    """Filter for entries; None matches all. `since` is inclusive, `until` exclusive.

    `keyword` is a part of the name of what an entry is about, in any case.
    """

    user_id: int | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    entity_type: str | None = None
    entity_id: int | None = None
    ip_address: str | None = None
    keyword: str | None = None
    actor: Actor | None = None


def add(session: Session, **columns: Any) -> None:
    """Insert an entry."""
    folded = folded_column(columns.get("entity_name"))
    session.execute(_ADD, {**columns, "entity_name_folded": folded})


def list_newest(session: Session, chosen: EntryFilter, most: int) -> Sequence[Any]:
    """Return up to `most` matching entries, newest first."""
    newest_first = AuditEntry.created_at.desc(), AuditEntry.id.desc()
    statement = select(*_COLUMNS).where(*matching(chosen)).order_by(*newest_first)
    return session.execute(statement.limit(most)).all()


def matching(chosen: EntryFilter) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of a filter."""
    for name in ("user_id", "action", "entity_type", "entity_id", "ip_address"):
        if (value := getattr(chosen, name)) is not None:
            yield getattr(AuditEntry, name) == value
    if chosen.since is not None:
        yield AuditEntry.created_at >= chosen.since
    if chosen.until is not None:
        yield AuditEntry.created_at < chosen.until
    if chosen.keyword is not None:
        yield has_part(chosen.keyword, AuditEntry.entity_name, AuditEntry.entity_name_folded)
    if chosen.actor is not None:
        yield _BY[chosen.actor]


def is_by_or_about(user_id: int) -> ColumnElement[bool]:
    """Return the condition for the entries that an account made, or that are about it."""
    return or_(AuditEntry.user_id == user_id, *are_about(user_id))


def are_about(user_id: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions for the entries about an account, and for those about its tokens.

    The latter are only those of operators, who are few; each condition has an index.
    """
    its_own = and_(AuditEntry.entity_type == EntityType.USER, AuditEntry.entity_id == user_id)
    of_its_tokens = and_(
        AuditEntry.action.in_((Action.ADMIN_CREATE_USER_TOKEN, Action.ADMIN_REMOVE_USER_TOKEN)),
        AuditEntry.details.startswith(f'{{"user_id": {user_id},', autoescape=True),
    )
    return its_own, of_its_tokens


def read_page_of_ids(session: Session, paging: Paging, *conditions: ColumnElement[bool]) -> Page:
    """Return the ids of a page of the entries that meet all conditions."""
    return read_ids(session, select(AuditEntry.id).where(*conditions), SORT_COLUMNS, paging)


def read_page(session: Session, paging: Paging, *conditions: ColumnElement[bool]) -> Page:
    """Return a page of the entries that meet all conditions."""
    page = read_page_of_ids(session, paging, *conditions)
    return replace(page, items=read_entries(session, page.items))


def read_entries(session: Session, ids: Sequence[int]) -> list[Any]:
    """Return the existing ones of these entries, in this order."""
    rows = session.execute(select(*_COLUMNS).where(AuditEntry.id.in_(ids)))
    found = {row.id: row for row in rows}
    return [found[entry_id] for entry_id in ids if entry_id in found]


def read_batch(
    session: Session,
    paging: Paging,
    after: tuple[Any, int] | None,
    *conditions: ColumnElement[bool],
) -> Sequence[Any]:
    """Return the next `paging.limit` entries, each with the value it is ordered by as `place`.

    `after` is `place` and id of the last one of the batch before; None begins.
    """
    column = SORT_COLUMNS[paging.sort_by]
    statement = select(*_COLUMNS, column.label("place")).where(*conditions)
    here = tuple_(column, AuditEntry.id)
    if after is not None:
        place, entry_id = after
        there = tuple_(literal(place, column.type), literal(entry_id, AuditEntry.id.type))
        statement = statement.where(here < there if paging.is_descending else here > there)
    order = [part.desc() if paging.is_descending else part for part in (column, AuditEntry.id)]
    return session.execute(statement.order_by(*order).limit(paging.limit)).all()


def count_up_to(session: Session, most: int, *conditions: ColumnElement[bool]) -> int:
    """Return how many entries meet all conditions, at most `most`."""
    found = select(AuditEntry.id).where(*conditions).limit(most).subquery()
    return session.scalar(select(func.count()).select_from(found)) or 0


def last_id(session: Session) -> int:
    """Return the id of the entry that was written last; 0 if there is none."""
    return session.scalar(select(func.max(AuditEntry.id))) or 0


def count_by_action(session: Session, since: datetime) -> dict[str, int]:
    """Return how often each action was recorded since then."""
    counting = select(AuditEntry.action, func.count()).where(AuditEntry.created_at >= since)
    return {row[0]: row[1] for row in session.execute(counting.group_by(AuditEntry.action))}


def find_first_time(session: Session, since: datetime | None, until: datetime) -> datetime | None:
    """Return when the first entry from `since` on was made; None if none was made before `until`.

    `since` of None is the beginning.
    """
    statement = select(AuditEntry.created_at).where(AuditEntry.created_at < until)
    if since is not None:
        statement = statement.where(AuditEntry.created_at >= since)
    return session.scalar(statement.order_by(AuditEntry.created_at).limit(1))


def delete_older(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` entries made before a time; return how many."""
    outdated = select(AuditEntry.id).where(AuditEntry.created_at < before).limit(most)
    return bulk.change(session, delete(AuditEntry).where(AuditEntry.id.in_(outdated)))
