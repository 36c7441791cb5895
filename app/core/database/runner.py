"""Runs prepared statements on the driver's own cursor, several as one transaction."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.types import TypeEngine

from app.core import wait_times
from app.core.database.driver_pool import DriverPool
from app.core.database.prepared import AnyStatement, Prepared, Row
from app.core.errors import DatabaseConnectionLost, DatabaseUnavailable

Processor = Callable[[Any], Any]

# SQLSTATEs for a statement that the connection does not know, or knows already: a pooler in front
# of PostgreSQL may use another one of its connections for each message.
UNKNOWN_STATEMENT, KNOWN_STATEMENT = "26000", "42P05"


class Compiled:
    """A statement compiled for one database.

    `prepare` is the PREPARE statement that makes it known to a connection by its `name`; both are
    empty on SQLite.
    """

    def __init__(self, prepared: Prepared, dialect: Dialect) -> None:
        statement = prepared.on(dialect)
        compiled = statement.compile(dialect=dialect)
        types = {p: compiled.binds[p].type.dialect_impl(dialect) for p in prepared.parameters}
        self.name = self.prepare = ""
        self.text = str(compiled)
        order = list(prepared.parameters)
        if dialect.name == "postgresql":
            self.name, self.text, self.prepare = _prepared(self.text, types, dialect)
        else:
            order = list(compiled.positiontup or ())
        self._order = [prepared.parameters.index(p) for p in order]
        binders = [types[p].bind_processor(dialect) for p in order]
        self._binders = [(place, bind) for place, bind in enumerate(binders) if bind]
        self._processors = _result_processors(statement, dialect)

    def bound(self, values: Row) -> Row:
        """Return the values in the order and the types that the driver takes."""
        bound = [values[index] for index in self._order]
        for place, bind in self._binders:
            bound[place] = bind(bound[place])
        return tuple(bound)

    def processed(self, rows: list[Row]) -> list[Row]:
        """Return the driver's rows with their values converted to the types of the columns."""
        if not self._processors:
            return rows
        return [self._processed(row) for row in rows]

    def _processed(self, row: Row) -> Row:
        values = list(row)
        for index, process in self._processors:
            values[index] = process(values[index])
        return tuple(values)


@cache
def compiled_for(prepared: Prepared, dialect: Dialect) -> Compiled:
    """Return a statement compiled for one database; cached."""
    return Compiled(prepared, dialect)


_Bound = tuple[Compiled, Row]


class Runner:
    """Runs compiled statements on connections in autocommit mode."""

    def __init__(self, dialect: Dialect, pool: DriverPool) -> None:
        self._dialect, self._pool = dialect, pool
        driver: Any = dialect.dbapi
        self._driver_error, self._operational_error = driver.Error, driver.OperationalError
        self._is_sqlite = dialect.name == "sqlite"
        self._unavailable = (
            () if self._is_sqlite else (driver.OperationalError, driver.InterfaceError)
        )

    def rows(self, compiled: Compiled, values: Row) -> list[Row]:
        """Return every row, retrying once if the connection was lost.

        Raises: DatabaseUnavailable.
        """
        try:
            return self.returned([(compiled, values)])
        except DatabaseConnectionLost:
            # The database may have been restarted since the connection was made.
            return self.returned([(compiled, values)])

    def returned(self, steps: Sequence[_Bound]) -> list[Row]:
        """Run statements as one transaction; return the rows of the last one.

        Raises: DatabaseConnectionLost; DatabaseUnavailable (nothing was changed); IntegrityError.
        """
        rows: list[Row] = self._on_cursor(steps, lambda cursor: cursor.fetchall())
        return steps[-1][0].processed(rows)

    def changed(self, steps: Sequence[_Bound]) -> int:
        """Run statements as one transaction; return how many rows the last one changed.

        Raises: DatabaseConnectionLost; DatabaseUnavailable (nothing was changed); IntegrityError.
        """
        count: int = self._on_cursor(steps, lambda cursor: cursor.rowcount)
        return count

    def _on_cursor(self, steps: Sequence[_Bound], outcome: Callable[[Any], Any]) -> Any:
        began = perf_counter()
        try:
            return self._on_a_connection(steps, outcome)
        finally:
            wait_times.add_database(perf_counter() - began)

    def _on_a_connection(self, steps: Sequence[_Bound], outcome: Callable[[Any], Any]) -> Any:
        steps = [(compiled, compiled.bound(values)) for compiled, values in steps]
        connection = self._pool.take()
        try:
            cursor = connection.cursor()
            if self._is_sqlite:
                result = _run_on_sqlite(cursor, steps, outcome)
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
            if isinstance(error, self._operational_error):
                raise  # SQLite's: the caller retries while the database is locked
            raise DBAPIError.instance(
                None, None, error, self._driver_error, dialect=self._dialect
            ) from error
        except BaseException as error:
            # Interrupted, e.g. by a timeout: the connection may be in the middle of a reply.
            self._pool.drop(connection, error)
            raise
        self._pool.put(connection)
        return result

    def _execute(
        self, connection: PoolProxiedConnection, cursor: Any, steps: Sequence[_Bound]
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
            self._execute_behind_a_pooler(connection, cursor, steps, text, bound)

    def _execute_behind_a_pooler(
        self,
        connection: PoolProxiedConnection,
        cursor: Any,
        steps: Sequence[_Bound],
        text: str,
        bound: Row,
    ) -> None:
        """Run the statements on a connection of the pooler, after preparing there what is missing.

        All of it is one transaction, during which a pooler keeps to one connection. That one may
        know none, some or all of the statements. The outcome is left in `cursor`.
        """
        around = connection.cursor()
        around.execute("BEGIN")
        try:
            around.execute("SELECT name FROM pg_prepared_statements")
            known = {name for (name,) in around.fetchall()}
            unknown = {c.name: c.prepare for c, _ in steps if c.name not in known}
            for prepare in unknown.values():
                around.execute(prepare)
            cursor.execute(text, bound)
            around.execute("COMMIT")
        except self._driver_error:
            around.execute("ROLLBACK")
            raise
        around.close()

    def _prepare(self, connection: PoolProxiedConnection, cursor: Any, compiled: Compiled) -> None:
        try:
            cursor.execute(compiled.prepare)
        except self._driver_error as error:
            if getattr(error, "pgcode", None) != KNOWN_STATEMENT:
                raise
        connection.info[compiled.name] = True


def _run_on_sqlite(cursor: Any, steps: Sequence[_Bound], outcome: Callable[[Any], Any]) -> Any:
    """Run the statements, several of them between BEGIN and COMMIT, and return the outcome."""
    if len(steps) == 1:
        cursor.execute(steps[0][0].text, steps[0][1])
        return outcome(cursor)
    cursor.execute("BEGIN IMMEDIATE")
    try:
        for compiled, bound in steps:
            cursor.execute(compiled.text, bound)
        result = outcome(cursor)
        cursor.connection.commit()
    except BaseException:
        cursor.connection.rollback()
        raise
    return result


def _prepared(
    text: str, types: dict[str, TypeEngine[Any]], dialect: Dialect
) -> tuple[str, str, str]:
    """Return the name, EXECUTE and PREPARE of a statement that has psycopg2's named placeholders.

    The name is a hash of the statement: behind a pooler, connections may know statements of another
    version of this service, which must not be run instead.
    """
    for number, (parameter, kind) in enumerate(types.items(), start=1):
        mark = f"%({parameter})s"
        text = text.replace(f"{mark}::{kind.compile(dialect)}", mark).replace(mark, f"${number}")
    kinds = [kind.compile(dialect) for kind in types.values()]
    name = f"gatehouse_{hashlib.sha256(f'{kinds} {text}'.encode()).hexdigest()[:24]}"
    if not kinds:
        return name, f"EXECUTE {name}", f"PREPARE {name} AS {text}"
    # psycopg2 writes a list as ARRAY['a'], which unlike a plain 'a' has a type and needs a cast.
    marks = ", ".join(f"%s::{kind}" if kind.endswith("[]") else "%s" for kind in kinds)
    return name, f"EXECUTE {name} ({marks})", f"PREPARE {name} ({', '.join(kinds)}) AS {text}"


def _result_processors(statement: AnyStatement, dialect: Dialect) -> list[tuple[int, Processor]]:
    """Return what converts the driver's values to the columns' types, by index, where needed."""
    types = [column.type.dialect_impl(dialect) for column in statement.exported_columns]
    processors = [kind.result_processor(dialect, None) for kind in types]
    return [(index, p) for index, p in enumerate(processors) if p is not None]
