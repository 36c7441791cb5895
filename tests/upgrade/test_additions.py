"""Migrations only add: instances of a released version go on while, and after, they have run."""

from typing import Any

import pytest
import sqlalchemy as sa
from flask_migrate import downgrade, upgrade

from app.core.config import MIGRATIONS

pytestmark = pytest.mark.both_databases

REVISIONS = {"0.1": "0008", "0.2": "0018"}


def schema_of(rt: Any) -> sa.MetaData:
    found = sa.MetaData()
    with rt.reading() as session:
        found.reflect(session.connection())
    return found


def uniques_of(table: sa.Table) -> set[frozenset[str]]:
    """Return the sets of columns that may not occur twice, of some or of all rows."""
    constraints = [c for c in table.constraints if isinstance(c, sa.UniqueConstraint)]
    both = [*constraints, *(index for index in table.indexes if index.unique)]
    return {frozenset(column.name for column in one.columns) for one in both}


def complaints(old: sa.Table, new: sa.Table) -> list[str]:
    """Return what the SQL of the old version would fail on."""
    found = [f"{column.name} is gone" for column in old.c if column.name not in new.c]
    for column in new.c:
        was = old.c.get(column.name)
        if was is None:
            if not column.nullable and column.server_default is None:
                found.append(f"{column.name} has no default")
        elif was.nullable and not column.nullable:
            found.append(f"{column.name} is required")
        elif str(was.type) != str(column.type):
            found.append(f"{column.name} was {was.type}")
    known = {column.name for column in old.c}
    rules = [sorted(rule) for rule in uniques_of(new) - uniques_of(old) if rule <= known]
    return found + [f"{rule} is unique" for rule in rules]


@pytest.mark.parametrize("version", REVISIONS)
def test_the_tables_of_a_released_version_are_only_added_to(app, rt, version):
    newest = schema_of(rt)
    with app.app_context():
        downgrade(str(MIGRATIONS), REVISIONS[version])
    old = schema_of(rt)
    with app.app_context():
        upgrade(str(MIGRATIONS))
    assert len(old.tables) > 10
    assert set(old.tables) - set(newest.tables) == set()
    found = {name: complaints(table, newest.tables[name]) for name, table in old.tables.items()}
    assert {name: what for name, what in found.items() if what} == {}
