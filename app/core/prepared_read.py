"""SELECTs that run on nearly every request, without what SQLAlchemy does for each execution.

The statement is still written with SQLAlchemy's expressions. It is compiled once per database and
run on the driver's cursor; PostgreSQL also plans it once per connection (PREPARE), which costs it
more than running it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Dialect, Engine, Select
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.types import TypeEngine

from app.core.errors import DatabaseUnavailable

_numbers = itertools.count(1)

Row = tuple[Any, ...]
AnySelect = Select[Any] | Select[*tuple[Any, ...]]
Processor = Callable[[Any], Any]

# SQLSTATEs of a statement another session of a pooler prepared, or did not.
UNKNOWN_STATEMENT, KNOWN_STATEMENT = "26000", "42P05"


@dataclass(frozen=True, eq=False)
class PreparedRead:
    """One SELECT, and the names of its bindparams in the order their values are given."""

    statement: AnySelect
    parameters: tuple[str, ...]
    name: str = field(default_factory=lambda: f"gatehouse_{next(_numbers)}")


class CompiledRead:
    """The statement in the form one engine runs; the engine must be in autocommit mode."""

    def __init__(self, read: PreparedRead, engine: Engine) -> None:
        dialect = engine.dialect
        compiled = read.statement.compile(dialect=dialect)
        types = {p: compiled.binds[p].type.dialect_impl(dialect) for p in read.parameters}
        self._engine = engine
        self._name = read.name
        self._text, self._prepare = str(compiled), ""
        order = list(read.parameters)
        if dialect.name == "postgresql":
            self._text, self._prepare = _prepared(self._text, read.name, types, dialect)
        else:
            order = list(compiled.positiontup or ())
        self._binders = [
            (read.parameters.index(p), types[p].bind_processor(dialect) or _unchanged)
            for p in order
        ]
        columns = [column.type.dialect_impl(dialect) for column in read.statement.selected_columns]
        processors = [column.result_processor(dialect, None) for column in columns]
        self._processors = [(i, p) for i, p in enumerate(processors) if p is not None]

    def all(self, values: Row) -> list[Row]:
        """Return every row.

        Raises: DatabaseUnavailable when the connection is lost.
        """
        bound = tuple(bind(values[index]) for index, bind in self._binders)
        connection = self._engine.raw_connection()
        try:
            rows = self._run(connection, bound)
        except self._engine.dialect.dbapi.Error as error:  # type: ignore[union-attr]
            if self._engine.dialect.is_disconnect(error, connection, None):
                connection.invalidate(error)
                raise DatabaseUnavailable from error
            raise
        finally:
            connection.close()
        if not self._processors:
            return rows
        return [self._processed(row) for row in rows]

    def _run(self, connection: PoolProxiedConnection, parameters: Row) -> list[Row]:
        cursor = connection.cursor()
        try:
            if self._prepare and self._name not in connection.info:
                self._prepare_on(connection, cursor)
            try:
                cursor.execute(self._text, parameters)
            except self._engine.dialect.dbapi.Error as error:  # type: ignore[union-attr]
                # A pooler between us and PostgreSQL may hand out another connection each time.
                if getattr(error, "pgcode", None) != UNKNOWN_STATEMENT:
                    raise
                self._prepare_on(connection, cursor)
                cursor.execute(self._text, parameters)
            return cursor.fetchall()  # type: ignore[return-value]
        finally:
            cursor.close()

    def _prepare_on(self, connection: PoolProxiedConnection, cursor: Any) -> None:
        try:
            cursor.execute(self._prepare)
        except self._engine.dialect.dbapi.Error as error:  # type: ignore[union-attr]
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


def _unchanged(value: Any) -> Any:
    return value
