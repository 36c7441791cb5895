"""Rows that an operator gives by id or by a name, which several rows may have."""

from typing import Any, TypeVar

from sqlalchemy import false, or_, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, NotFound
from app.core.texts import shortened, typed_reference
from app.store.db import Base

Named = TypeVar("Named", bound=Base)


class NameAmbiguous(Conflict):
    """Several rows have the name; the message lists their ids."""


def get_named(
    session: Session,
    table: type[Named],
    typed: str | int,
    missing: type[NotFound],
    one: str,
    many: str,
) -> Named:
    """Return the row with this id or name; `id:` and `name:` before it say which of them it is.

    An `int` is only ever an id. `one` and `many` are what messages call such rows.
    Raises: `missing`; NameAmbiguous for what means several rows.
    """
    if isinstance(typed, int):
        if found := session.get(table, typed):
            return found
        raise missing
    row_id, name = typed_reference(typed)
    columns: Any = table
    meant = [columns.id == row_id] if row_id is not None else []
    meant += [columns.name == name.strip()] if name is not None else []
    statement = select(table).where(or_(false(), *meant)).order_by(columns.id)
    rows: Any = session.scalars(statement).all()
    if not rows:
        raise missing(f"There is no {one} {shortened(typed)}.")
    if len(rows) > 1:
        ids = " or ".join(f"id:{row.id}" for row in rows)
        raise NameAmbiguous(f"{shortened(typed)} means several {many}; say which: {ids}.")
    return rows[0]  # type: ignore[no-any-return]
