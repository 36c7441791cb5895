"""Prepared statements on a table that every installation has."""

import sqlalchemy as sa

from app.core.database.locks import NamedLock
from app.core.database.prepared import Prepared, constant
from app.core.runtime import Runtime

ADD = Prepared(
    sa.insert(NamedLock).from_select(["name"], sa.select(sa.bindparam("new", type_=sa.String(32)))),
    ("new",),
)
READ = Prepared(
    sa.select(NamedLock.name)
    .where(NamedLock.name > constant("a'"), NamedLock.name.like(sa.bindparam("like")))
    .order_by(NamedLock.name),
    ("like",),
)
RENAME = Prepared(
    sa.update(NamedLock)
    .where(NamedLock.name == sa.bindparam("old"))
    .values(name=sa.bindparam("new")),
    ("old", "new"),
)


def names(rt: Runtime) -> list[str]:
    """Return the names that ADD and RENAME have written."""
    return [row[0] for row in rt.database.rows(READ, "new%")]
