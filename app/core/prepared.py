"""Statements that run on nearly every request, without what SQLAlchemy does for each execution.

They are still written with SQLAlchemy's expressions. Each is compiled once per database and run on
the driver's cursor; PostgreSQL also plans it once per connection (PREPARE), which costs it more
than running it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Dialect, Select, Update
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.types import TypeEngine

from app.core.driver_pool import DriverPool
from app.core.errors import DatabaseUnavailable

_numbers = itertools.count(1)

Row = tuple[Any, ...]
AnyStatement = Select[Any] | Select[*tuple[Any, ...]] | Update
Processor = Callable[[Any], Any]

# SQLSTATEs of a statement that this connection does not know, or knows already: a pooler between
# us and PostgreSQL may hand out another connection each time.
UNKNOWN_STATEMENT, KNOWN_STATEMENT = "26000", "42P05"


@dataclass(frozen=True, eq=False)
class Prepared:
    """One statement, and the names of its bindparams in the order their values are given."""

    statement: AnyStatement
    parameters: tuple[str, ...]
    name: str = field(default_factory=lambda: f"gatehouse_{next(_numbers)}")


class _ConnectionLost(DatabaseUnavailable):
    """A connection that had been in use before is gone."""


class Compiled:
    """The statement in the form one database runs, on connections in autocommit mode."""

    def __init__(self, prepared: Prepared, dialect: Dialect, pool: DriverPool) -> None:
        compiled = prepared.statement.compile(dialect=dialect)
        types = {p: compiled.binds[p].type.dialect_impl(dialect) for p in prepared.parameters}
        self._dialect, self._pool = dialect, pool
        self._name = prepared.name
        self._text, self._prepare = str(compiled), ""
        order = list(prepared.parameters)
        if dialect.name == "postgresql":
            self._text, self._prepare = _prepared(self._text, prepared.name, types, dialect)
        else:
            order = list(compiled.positiontup or ())
        self._binders = [
            (prepared.parameters.index(p), types[p].bind_processor(dialect) or _unchanged)
            for p in order
        ]
        driver: Any = dialect.dbapi
        self._driver_error = driver.Error
        # SQLite's errors of this kind are told apart, and waited for, by the caller.
        is_sqlite = dialect.name == "sqlite"
        self._unavailable = () if is_sqlite else (driver.OperationalError, driver.InterfaceError)
        self._processors = _result_processors(prepared.statement, dialect)

    def rows(self, values: Row) -> list[Row]:
        """Return every row.

        Raises: DatabaseUnavailable when the connection is lost.
        """
        try:
            rows: list[Row] = self._on_cursor(values, lambda cursor: cursor.fetchall())
        except _ConnectionLost:
            # The database may have been restarted since the connection was made.
            rows = self._on_cursor(values, lambda cursor: cursor.fetchall())
        if not self._processors:
            return rows
        return [self._processed(row) for row in rows]

    def changed(self, values: Row) -> int:
        """Run a statement that changes rows and return how many it did.

        Raises: DatabaseUnavailable when the connection is lost.
        """
        count: int = self._on_cursor(values, lambda cursor: cursor.rowcount)
        return count

    def _on_cursor(self, values: Row, outcome: Callable[[Any], Any]) -> Any:
        bound = tuple(bind(values[index]) for index, bind in self._binders)
        connection = self._pool.take()
        try:
            cursor = connection.cursor()
            self._execute(connection, cursor, bound)
            result = outcome(cursor)
            cursor.close()
        except self._driver_error as error:
            if self._dialect.is_disconnect(error, connection, None):
                self._pool.drop_all(connection, error)
                raise _ConnectionLost from error
            self._pool.put(connection)
            if isinstance(error, self._unavailable):
                raise DatabaseUnavailable from error
            raise
        except BaseException as error:
            # Cut short, say by a time-out: the connection may be in the middle of an answer.
            self._pool.drop(connection, error)
            raise
        self._pool.put(connection)
        return result

    def _execute(self, connection: PoolProxiedConnection, cursor: Any, bound: Row) -> None:
        if not self._prepare:
            cursor.execute(self._text, bound)
            return
        if self._name not in connection.info:
            self._prepare_on(connection, cursor)
        try:
            cursor.execute(self._text, bound)
        except self._driver_error as error:
            if getattr(error, "pgcode", None) != UNKNOWN_STATEMENT:
                raise
            self._prepare_on(connection, cursor)
            cursor.execute(self._text, bound)

    def _prepare_on(self, connection: PoolProxiedConnection, cursor: Any) -> None:
        try:
            cursor.execute(self._prepare)
        except self._driver_error as error:
            if getattr(error, "pgcode", None) != KNOWN_STATEMENT:
                raise
        connection.info[self._name] = True

    def _processed(self, row: Row) -> Row:
        values = list(row)
        for index, process in self._processors:
            values[index] = process(values[index])
        return tuple(values)


def _prepared(
    text: str, name: str, types: dict[str, TypeEngine[Any]], dialect: Dialect
) -> tuple[str, str]:
    """Return the EXECUTE and the PREPARE of a statement with psycopg2's named marks."""
    for number, (parameter, kind) in enumerate(types.items(), start=1):
        mark = f"%({parameter})s"
        text = text.replace(f"{mark}::{kind.compile(dialect)}", mark).replace(mark, f"${number}")
    kinds = ", ".join(kind.compile(dialect) for kind in types.values())
    marks = ", ".join(["%s"] * len(types))
    return f"EXECUTE {name} ({marks})", f"PREPARE {name} ({kinds}) AS {text}"


def _result_processors(statement: AnyStatement, dialect: Dialect) -> list[tuple[int, Processor]]:
    """Return what turns the driver's values into the columns' types, where anything does."""
    if isinstance(statement, Update):
        return []
    types = [column.type.dialect_impl(dialect) for column in statement.selected_columns]
    processors = [kind.result_processor(dialect, None) for kind in types]
    return [(index, p) for index, p in enumerate(processors) if p is not None]


def _unchanged(value: Any) -> Any:
    return value
