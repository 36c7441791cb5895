"""The three ways to access the database.

`transaction()` writes, `reading()` reads without opening a transaction, `rows()` and the like run
prepared statements. On SQLite writers queue here instead of in C: its own busy wait would block the
whole event loop of a gevent worker.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool, QueuePool

from app.core.clock import Clock
from app.core.config import Config
from app.core.database import engines, postgres_addresses, sqlite_writing
from app.core.database.checkpoints import MAX_PAGES, Checkpoints
from app.core.database.driver_pool import DriverPool
from app.core.database.lookups import BatchedReads, Key, Lookup
from app.core.database.prepared import Prepared, Row, Step
from app.core.database.runner import Compiled, Runner, compiled_for
from app.core.database.sqlite_file import SqliteFile
from app.core.db import Base
from app.core.errors import DatabaseUnavailable
from app.core.native_pool import NativePool

T = TypeVar("T")

# What can run a SELECT, in its caller's transaction or in none.
Reader = Connection | Session

# What the methods of Database raise while the database does not answer.
DATABASE_ERRORS = (SQLAlchemyError, DatabaseUnavailable)

extension = SQLAlchemy(model_class=Base)


class Database:
    """Hands out sessions and connections of one application's database.

    `driver_parameters` are the driver's connection parameters. `file` is None except on SQLite.
    """

    def __init__(self, app: Flask, config: Config, clock: Clock) -> None:
        app.config["SQLALCHEMY_DATABASE_URI"] = config.database_url
        app.config["SQLALCHEMY_ENGINE_OPTIONS"] = options = engines.options(config)
        extension.init_app(app)
        # This would close Flask-SQLAlchemy's session per request, which nothing uses.
        app.teardown_appcontext_funcs.clear()
        with app.app_context():
            self.engine: Engine = extension.engine
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        _, named = self.engine.dialect.create_connect_args(self.engine.url)
        self.driver_parameters = {**named, **options.get("connect_args", {})}
        self._clock = clock
        self._batched: dict[Lookup, BatchedReads] = {}
        self._count_statement: Callable[[], None] = lambda: None
        self.reader = engines.autocommit(config, poolclass=QueuePool)
        self._outside_pool = engines.autocommit(config, poolclass=QueuePool, pool_size=1)
        self._direct = engines.autocommit(config, poolclass=NullPool)
        timeout_seconds = engines.POOL_TIMEOUT_SECONDS
        self._drivers = DriverPool(self._direct, config.database_pool, timeout_seconds)
        self._runner = Runner(self._direct.dialect, self._drivers)
        for engine in (self.engine, self.reader, self._outside_pool):
            engines.note_waits(engine)
        self._writer_lock: AbstractContextManager[Any] = nullcontext()
        self._checkpoints: Checkpoints | None = None
        self.file: SqliteFile | None = None
        if self.is_sqlite:
            self.file = SqliteFile(str(self.engine.url.database))
            self._writer_lock = sqlite_writing.WriterLock(self._note_commit)
            for engine in (self.engine, self.reader, self._outside_pool, self._direct):
                event.listen(engine, "do_connect", self._require_file)
            for engine in (self.reader, self._outside_pool):
                event.listen(engine, "connect", self._prepare_sqlite)
            for engine in (self.engine, self._direct):  # here `retry_while_busy` waits, not SQLite
                event.listen(engine, "connect", self._prepare_sqlite_writer)
            event.listen(self.engine, "begin", self._begin_sqlite)
        else:
            for engine in (self.engine, self.reader, self._outside_pool):
                event.listen(engine, "checkout", engines.replace_closed)
            for engine in (self.engine, self.reader, self._outside_pool, self._direct):
                postgres_addresses.install(engine)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session whose changes are committed at the end, or rolled back on an error."""
        with (
            self._writer_lock,
            Session(self.engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection on which every statement sees the newest committed state."""
        with self.reader.connect() as connection:
            yield connection

    @contextmanager
    def reading_session(self) -> Iterator[Session]:
        """Yield a session that only reads, and so never waits for a writer."""
        with self.reading() as connection, Session(connection) as session:
            yield session

    def rows(self, prepared: Prepared, *values: Any) -> list[Row]:
        """Run a prepared SELECT and return every row.

        Raises: DatabaseUnavailable when the connection is lost.
        """
        self._count_statement()
        compiled = compiled_for(prepared, self._direct.dialect)
        if not self.is_sqlite:
            return self._runner.rows(compiled, values)
        # Readers need no lock, except at the moment when a write-ahead log is cleaned up.
        return sqlite_writing.retry_while_busy(
            self._clock, lambda: self._runner.rows(compiled, values)
        )

    def row(self, prepared: Prepared, *values: Any) -> Row | None:
        """Like `rows`, for a SELECT by a unique key; None if there is no row."""
        rows = self.rows(prepared, *values)
        return rows[0] if rows else None

    def lookup(self, lookup: Lookup, key: Key) -> Row | None:
        """Return the row with a unique key; None if there is no row.

        Raises: DatabaseUnavailable when the connection is lost.
        """
        rows = self.lookup_all(lookup, key)
        return rows[0] if rows else None

    def lookup_all(self, lookup: Lookup, key: Key) -> list[Row]:
        """Return the rows with a key, in no particular order.

        Raises: DatabaseUnavailable when the connection is lost.
        """
        if self.is_sqlite:
            return self.rows(lookup.one, key)
        reads = self._batched.get(lookup)
        if reads is None:
            reads = self._batched.setdefault(lookup, self._batched_reads(lookup))
        return reads.rows(key)

    def change_together(self, *steps: Step) -> int:
        """Run prepared statements as one transaction; return how many rows the last one changed.

        On PostgreSQL they are sent as one message, so the outcome of one cannot be checked before
        the next: a statement that depends on an earlier one must have a condition that says so.
        Raises: DatabaseConnectionLost; DatabaseUnavailable (nothing was changed); IntegrityError.
        """
        return self._change(self._runner.changed, steps)

    def change_then_read(self, *steps: Step) -> list[Row]:
        """Like `change_together`; return the rows of the last one."""
        return self._change(self._runner.returned, steps)

    def _change(
        self, run: Callable[[Sequence[tuple[Compiled, Row]]], T], steps: Sequence[Step]
    ) -> T:
        self._count_statement()
        compiled = [
            (compiled_for(prepared, self._direct.dialect), values) for prepared, values in steps
        ]
        if not self.is_sqlite:
            return run(compiled)
        with self._writer_lock:
            return sqlite_writing.retry_while_busy(self._clock, lambda: run(compiled))

    def _batched_reads(self, lookup: Lookup) -> BatchedReads:
        def read_many(keys: Sequence[Key]) -> Mapping[Key, list[Row]] | None:
            rows = self.rows(lookup.many, list(keys))
            if len(rows) >= lookup.most_together:
                return None
            found: dict[Key, list[Row]] = {}
            for row in rows:
                found.setdefault(row[-1], []).append(row[:-1])
            return found

        return BatchedReads(lambda key: self.rows(lookup.one, key), read_many)

    @contextmanager
    def reading_outside_pool(self) -> Iterator[Connection]:
        """Like `reading`, on a connection outside the pool.

        For reads that may run while the caller holds a pooled connection: if all are held by such
        callers, none of them would ever get a second one.
        """
        with self._outside_pool.connect() as connection:
            yield connection

    def on_statement(self, count: Callable[[], None]) -> None:
        """Call `count` for every statement."""
        self._count_statement = count
        for engine in (self.engine, self.reader, self._outside_pool):
            event.listen(engine, "after_cursor_execute", lambda *_: count())

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()
        self.reader.dispose()
        self._outside_pool.dispose()
        self._drivers.close()

    def start_checkpoints(self, disk: NativePool) -> Callable[[], None]:
        """Keep SQLite's checkpoints out of the commits of connections made from now on.

        Return the function that ends that.
        """
        if self.file is None:
            return lambda: None
        self._checkpoints = Checkpoints(self.file, disk)
        self._checkpoints.start()
        return self._checkpoints.stop

    def forget_inherited_connections(self) -> None:
        """Drop, after a fork, connections that belong to the parent process."""
        self.engine.dispose(close=False)
        self.reader.dispose(close=False)
        self._outside_pool.dispose(close=False)
        self._drivers.forget()

    def _require_file(self, *_: Any) -> None:
        # If the folder is missing or inaccessible, SQLite itself says what is wrong.
        if self.file is not None and os.path.isdir(self.file.path.parent):
            self.file.require()

    def _prepare_sqlite(self, connection: Any, _record: Any) -> None:
        sqlite_writing.prepare(connection, sqlite_writing.BUSY_WAIT_MS)

    def _prepare_sqlite_writer(self, connection: Any, _record: Any) -> None:
        beside = (f"wal_autocheckpoint={MAX_PAGES}",) if self._checkpoints else ()
        sqlite_writing.prepare(connection, 0, *beside)

    def _note_commit(self) -> None:
        if self._checkpoints:
            self._checkpoints.count_commit()

    def _begin_sqlite(self, connection: Connection) -> None:
        """Take the write lock at once, waiting cooperatively while another process holds it.

        A transaction that started by reading and took the lock later would fail instead of waiting.
        """

        def begin() -> None:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            except OperationalError as error:
                code = getattr(error.orig, "sqlite_errorcode", None)
                if code == sqlite3.SQLITE_BUSY_SNAPSHOT:
                    # A cursor that was left open holds an old snapshot, so waiting would never
                    # help: the retry is made on a new connection.
                    connection.invalidate(error)
                raise

        sqlite_writing.retry_while_busy(self._clock, begin)
