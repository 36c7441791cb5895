"""Rows that an operator gives by id or by a name, which several rows may have."""

from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.db import Base
from app.core.errors import Conflict, NotFound
from app.core.texts import shortened, typed_id

Named = TypeVar("Named", bound=Base)


class NameAmbiguous(Conflict):
    """Several rows have the name; the message tells their ids."""


def get_named(
    session: Session,
    table: type[Named],
    typed: str | int,
    missing: type[NotFound],
    one: str,
    many: str,
) -> Named:
    """Return the row with this id or name; digits are taken for an id first, an `int` only for one.

    `one` and `many` are what messages call such rows. Raises: `missing`, NameAmbiguous.
    """
    row_id = typed if isinstance(typed, int) else typed_id(typed)
    if row_id is not None and (found := session.get(table, row_id)):
        return found
    if isinstance(typed, int):
        raise missing
    columns: Any = table
    named = select(table).where(columns.name == typed.strip()).order_by(columns.id)
    rows: Any = session.scalars(named).all()
    if not rows:
        raise missing(f"There is no {one} {shortened(typed)}.")
    if len(rows) > 1:
        ids = " or ".join(str(row.id) for row in rows)
        raise NameAmbiguous(f"Several {many} are called {shortened(typed)}; give the id, {ids}.")
    return rows[0]  # type: ignore[no-any-return]
