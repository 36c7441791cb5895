"""Statements with named parameters, run as the steps of one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Insert,
    Integer,
    Select,
    String,
    Update,
    literal_column,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

T = TypeVar("T")
Row = tuple[Any, ...]
AnyStatement = Select[Any] | Select[*tuple[Any, ...]] | Insert | Update


@dataclass(frozen=True, eq=False)
class Prepared:
    """One statement, and the names of its bindparams in the order their values are given.

    A value that is always the same should be a `constant`. Where the databases need different
    statements, `statement` maps the name of each dialect to its own.
    """

    statement: AnyStatement | Mapping[str, AnyStatement]
    parameters: tuple[str, ...]

    def on(self, dialect: Dialect) -> AnyStatement:
        """Return the statement for one database."""
        if isinstance(self.statement, Mapping):
            return self.statement[dialect.name]
        return self.statement

    def step(self, **values: Any) -> "Step":
        """Return the statement with the value of each parameter, to be run with others.

        Raises: TypeError, KeyError if the values are not exactly its parameters: none may get lost.
        """
        if len(values) > len(self.parameters):
            raise TypeError(f"not taken: {values.keys() - set(self.parameters)}")
        return self, tuple([values[name] for name in self.parameters])


Step = tuple[Prepared, Row]


def constant(value: str | int) -> ColumnElement[Any]:
    """Return a value written into the statement's text, so that the plan can depend on it."""
    if isinstance(value, int):
        return literal_column(str(value), Integer)
    quoted = value.replace("'", "''")
    return literal_column(f"'{quoted}'", String)


def run_within(session: Session, *steps: Step) -> int:
    """Run statements within a larger transaction; return how many rows the last one changed."""
    return run_on(session.connection(), steps)[0]


def run_on(connection: Connection, steps: Sequence[Step]) -> tuple[int, list[Row]]:
    """Run statements; return how many rows the last one changed, and those that it returned."""
    count, rows = 0, list[Row]()
    for prepared, values in steps:
        named = dict(zip(prepared.parameters, values, strict=True))
        result = connection.execute(prepared.on(connection.dialect), named)
        count, rows = result.rowcount, []
        if result.returns_rows:
            rows = [tuple(row) for row in result]
            count = max(count, len(rows))
        result.close()
    return count, rows


def per_database(build: Callable[[Any], T]) -> dict[str, T]:
    """Return a statement for each database by the dialect's name, for `Prepared` and `chosen`.

    `build` is given that dialect's INSERT, since the generic one has no ON CONFLICT.
    """
    return {"sqlite": build(sqlite.insert), "postgresql": build(postgresql.insert)}


def chosen(session: Session, statements: Mapping[str, T]) -> T:
    """Return the statement for this session's database."""
    return statements[session.get_bind().dialect.name]
