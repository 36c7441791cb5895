"""Statements that run on nearly every request, without what SQLAlchemy does for each execution.

They are still written with SQLAlchemy's expressions. Each is compiled once per database and run on
the driver's cursor; PostgreSQL also plans it once per connection (PREPARE), which costs it more
than running it.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Dialect, Insert, Select, Update
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.types import TypeEngine

from app.core.driver_pool import DriverPool
from app.core.errors import DatabaseConnectionLost, DatabaseUnavailable

_numbers = itertools.count(1)

Row = tuple[Any, ...]
AnyStatement = Select[Any] | Select[*tuple[Any, ...]] | Insert | Update
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


class Compiled:
    """A statement in the form one database runs.

    `prepare` is what makes it known to a connection; empty where nothing does.
    """

    def __init__(self, prepared: Prepared, dialect: Dialect) -> None:
        compiled = prepared.statement.compile(dialect=dialect)
        types = {p: compiled.binds[p].type.dialect_impl(dialect) for p in prepared.parameters}
        self.name = prepared.name
        self.text, self.prepare = str(compiled), ""
        order = list(prepared.parameters)
        if dialect.name == "postgresql":
            self.text, self.prepare = _prepared(self.text, prepared.name, types, dialect)
        else:
            order = list(compiled.positiontup or ())
        self._binders = [
            (prepared.parameters.index(p), types[p].bind_processor(dialect) or _unchanged)
            for p in order
        ]
        self._processors = _result_processors(prepared.statement, dialect)

    def bound(self, values: Row) -> Row:
        """Return the values as the driver takes them."""
        return tuple(bind(values[index]) for index, bind in self._binders)

    def processed(self, rows: list[Row]) -> list[Row]:
        """Return what the driver fetched in the types of the columns."""
        if not self._processors:
            return rows
        return [self._processed(row) for row in rows]

    def _processed(self, row: Row) -> Row:
        values = list(row)
        for index, process in self._processors:
            values[index] = process(values[index])
        return tuple(values)


Step = tuple[Compiled, Row]


class Runner:
    """Runs compiled statements on connections in autocommit mode."""

    def __init__(self, dialect: Dialect, pool: DriverPool) -> None:
        self._dialect, self._pool = dialect, pool
        driver: Any = dialect.dbapi
        self._driver_error = driver.Error
        # SQLite's errors of this kind are told apart, and waited for, by the caller.
        self._is_sqlite = dialect.name == "sqlite"
        self._unavailable = (
            () if self._is_sqlite else (driver.OperationalError, driver.InterfaceError)
        )

    def rows(self, compiled: Compiled, values: Row) -> list[Row]:
        """Return every row.

        Raises: DatabaseUnavailable when the connection is lost.
        """
        step = (compiled, compiled.bound(values))
        try:
            rows: list[Row] = self._on_cursor([step], lambda cursor: cursor.fetchall())
        except DatabaseConnectionLost:
            # The database may have been restarted since the connection was made.
            rows = self._on_cursor([step], lambda cursor: cursor.fetchall())
        return compiled.processed(rows)

    def returned(self, compiled: Compiled, values: Row) -> list[Row]:
        """Run a statement with RETURNING and return its rows; it is never run twice.

        Raises: DatabaseConnectionLost; DatabaseUnavailable, when nothing was changed.
        """
        step = (compiled, compiled.bound(values))
        rows: list[Row] = self._on_cursor([step], lambda cursor: cursor.fetchall())
        return compiled.processed(rows)

    def changed(self, steps: Sequence[tuple[Compiled, Row]]) -> int:
        """Run statements as one transaction; return how many rows the last one changed.

        Raises: DatabaseConnectionLost; DatabaseUnavailable, when nothing was changed.
        """
        bound = [(compiled, compiled.bound(values)) for compiled, values in steps]
        count: int = self._on_cursor(bound, lambda cursor: cursor.rowcount)
        return count

    def _on_cursor(self, steps: Sequence[Step], outcome: Callable[[Any], Any]) -> Any:
        connection = self._pool.take()
        try:
            cursor = connection.cursor()
            if self._is_sqlite:
                _execute_on_sqlite(cursor, steps)
            else:
                self._execute(connection, cursor, steps)
            result = outcome(cursor)
            cursor.close()
        except self._driver_error as error:
            if self._dialect.is_disconnect(error, connection, None):
                self._pool.drop_all(connection, error)
                raise DatabaseConnectionLost from error
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

    def _execute(
        self, connection: PoolProxiedConnection, cursor: Any, steps: Sequence[Step]
    ) -> None:
        """Send all statements in one message, which PostgreSQL runs as one transaction."""
        text = ";".join(compiled.text for compiled, _ in steps)
        bound = tuple(value for _, values in steps for value in values)
        for compiled, _ in steps:
            if compiled.name not in connection.info:
                self._prepare(connection, cursor, compiled)
        try:
            cursor.execute(text, bound)
        except self._driver_error as error:
            if getattr(error, "pgcode", None) != UNKNOWN_STATEMENT:
                raise
            for compiled, _ in steps:
                self._prepare(connection, cursor, compiled)
            cursor.execute(text, bound)

    def _prepare(self, connection: PoolProxiedConnection, cursor: Any, compiled: Compiled) -> None:
        try:
            cursor.execute(compiled.prepare)
        except self._driver_error as error:
            if getattr(error, "pgcode", None) != KNOWN_STATEMENT:
                raise
        connection.info[compiled.name] = True


def _execute_on_sqlite(cursor: Any, steps: Sequence[Step]) -> None:
    """Run the statements; several of them between BEGIN and COMMIT."""
    if len(steps) == 1:
        cursor.execute(steps[0][0].text, steps[0][1])
        return
    cursor.execute("BEGIN IMMEDIATE")
    try:
        for compiled, bound in steps:
            cursor.execute(compiled.text, bound)
        cursor.connection.commit()
    except BaseException:
        cursor.connection.rollback()
        raise


def _prepared(
    text: str, name: str, types: dict[str, TypeEngine[Any]], dialect: Dialect
) -> tuple[str, str]:
    """Return the EXECUTE and the PREPARE of a statement with psycopg2's named marks."""
    for number, (parameter, kind) in enumerate(types.items(), start=1):
        mark = f"%({parameter})s"
        text = text.replace(f"{mark}::{kind.compile(dialect)}", mark).replace(mark, f"${number}")
    kinds = [kind.compile(dialect) for kind in types.values()]
    # psycopg2 writes a list as ARRAY['a'], which unlike 'a' has a type of its own.
    marks = ", ".join(f"%s::{kind}" if kind.endswith("[]") else "%s" for kind in kinds)
    return f"EXECUTE {name} ({marks})", f"PREPARE {name} ({', '.join(kinds)}) AS {text}"


def _result_processors(statement: AnyStatement, dialect: Dialect) -> list[tuple[int, Processor]]:
    """Return what turns the driver's values into the columns' types, where anything does."""
    types = [column.type.dialect_impl(dialect) for column in statement.exported_columns]
    processors = [kind.result_processor(dialect, None) for kind in types]
    return [(index, p) for index, p in enumerate(processors) if p is not None]


def _unchanged(value: Any) -> Any:
    return value
