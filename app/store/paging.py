"""Pages of long lists: which part is wanted, and reading it with the number of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session


@dataclass(frozen=True)
class Wanted:
    """The part of a list that is asked for; ties of the order are broken by id, the same way."""

    limit: int
    offset: int
    sort_by: str = "id"
    is_descending: bool = True


@dataclass(frozen=True)
class Page:
    """Part of a list; `total` counts what the same filter matches."""

    items: Sequence[Any]
    total: int
    limit: int
    offset: int


def part_of(everything: Sequence[Any], wanted: Wanted) -> Page:
    """Return a page of a list that is read as a whole, in its own order."""
    part = everything[wanted.offset : wanted.offset + wanted.limit]
    return Page(part, len(everything), wanted.limit, wanted.offset)


def read_ids(
    session: Session, matching: Select[Any], columns: Mapping[str, Any], wanted: Wanted
) -> Page:
    """Return the ids of a page, and how many there are in all.

    `matching` selects the column of ids alone, so that a far page is found in an index before any
    row is read. `columns` are those that `wanted.sort_by` may name; it has `id`.
    """
    order = [columns[wanted.sort_by]]
    if wanted.sort_by != "id":
        order.append(columns["id"])
    ordered = (column.desc() if wanted.is_descending else column.asc() for column in order)
    statement = matching.order_by(*ordered).limit(wanted.limit).offset(wanted.offset)
    found = session.scalars(statement).all()
    total = wanted.offset + len(found)
    if len(found) == wanted.limit or (wanted.offset and not found):  # not the last page
        total = session.scalar(select(func.count()).select_from(matching.subquery())) or 0
    return Page(found, total, wanted.limit, wanted.offset)
