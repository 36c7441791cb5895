"""Pages of long lists: which part is asked for, and reading it with the number of all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

# Beyond this many rows, PostgreSQL's planner estimates: counting them reads every one.
MAX_COUNTED = 10_000


@dataclass(frozen=True)
class Paging:
    """The part of a list that is asked for; ties of the order are broken by id, the same way."""

    limit: int
    offset: int
    sort_by: str = "id"
    is_descending: bool = True


@dataclass(frozen=True)
class Page:
    """Part of a list; `total` counts what the same filter matches, or estimates it."""

    items: Sequence[Any]
    total: int
    limit: int
    offset: int
    total_is_exact: bool = True


def part_of(everything: Sequence[Any], paging: Paging) -> Page:
    """Return a page of a list that is read as a whole, in its own order."""
    part = everything[paging.offset : paging.offset + paging.limit]
    return Page(part, len(everything), paging.limit, paging.offset)


def read_ids(
    session: Session, matching: Select[Any], columns: Mapping[str, Any], paging: Paging
) -> Page:
    """Return the ids of a page, and how many there are in all.

    `matching` selects the column of ids alone, so that a far page is found in an index before any
    row is read. `columns` are those that `paging.sort_by` may name; it has `id`.
    """
    order = [columns[paging.sort_by]]
    if paging.sort_by != "id":
        order.append(columns["id"])
    ordered = (column.desc() if paging.is_descending else column.asc() for column in order)
    statement = matching.order_by(*ordered).limit(paging.limit).offset(paging.offset)
    found = session.scalars(statement).all()
    total, is_exact = _total(session, matching, paging, len(found))
    return Page(found, total, paging.limit, paging.offset, is_exact)


def _total(session: Session, matching: Select[Any], paging: Paging, found: int) -> tuple[int, bool]:
    """Return how many rows match if a page has `found` of them, and whether that is exact."""
    if paging.offset and not found:  # beyond the end: exact, so that the last page can be found
        return _counted(session, matching), True
    end = paging.offset + found
    if found < paging.limit:
        return end, True
    total, is_exact = count(session, matching)
    # A full page may have a next one, however little is expected.
    return (total, True) if is_exact else (max(total, end + 1), False)


def count(session: Session, matching: Select[Any]) -> tuple[int, bool]:
    """Return how many rows match, and whether that is exact; up to MAX_COUNTED it always is.

    SQLite counts them all: a million rows of a table in ten milliseconds.
    """
    if session.get_bind().dialect.name == "sqlite":
        return _counted(session, matching), True
    number = _counted(session, matching.limit(MAX_COUNTED + 1))
    if number <= MAX_COUNTED:
        return number, True
    return max(number, _expected(session, matching)), False


def _counted(session: Session, matching: Select[Any]) -> int:
    return session.scalar(select(func.count()).select_from(matching.subquery())) or 0


def _expected(session: Session, matching: Select[Any]) -> int:
    """Return how many rows PostgreSQL's planner expects."""
    connection = session.connection()
    statement = matching.compile(connection, compile_kwargs={"render_postcompile": True})
    explained = connection.exec_driver_sql(
        f"EXPLAIN (FORMAT JSON) {statement}", dict(statement.params)
    )
    return int(explained.scalar_one()[0]["Plan"]["Plan Rows"])


def read_items(
    session: Session,
    matching: Select[Any],
    columns: Mapping[str, Any],
    paging: Paging,
    find: Callable[[Sequence[int]], Mapping[Any, Any]],
) -> Page:
    """Return a page whose items `find` returns by their ids; see `read_ids` for the rest."""
    page = read_ids(session, matching, columns, paging)
    found = find(page.items)
    return replace(page, items=[found[row_id] for row_id in page.items if row_id in found])


def rows_of(session: Session, table: Any) -> Callable[[Sequence[int]], Mapping[Any, Any]]:
    """Return what finds the rows of a table by their ids."""

    def find(ids: Sequence[int]) -> Mapping[Any, Any]:
        return {row.id: row for row in session.scalars(select(table).where(table.id.in_(ids)))}

    return find
