"""How the database is reached: Flask-SQLAlchemy's engine and session, one transaction per use case.

`transaction()` writes, `reading()` reads without beginning a transaction.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from flask import Flask
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from app.core.config import Config
from app.core.errors import AppError, DatabaseConnectionLost, DatabaseUnavailable
from app.core.logs import add_database_wait
from app.store import postgres, sqlite
from app.store.db import READING, db
from app.store.revisions import SchemaCheck
from app.store.sqlite import SqliteFile

POOL_TIMEOUT_SECONDS = 5

# What the methods of Database raise while the database does not answer.
DATABASE_ERRORS = (SQLAlchemyError, DatabaseUnavailable)


class DatabaseReadOnly(DatabaseUnavailable):
    """The database answers, but accepts no writes: a standby, or a read-only file."""

    message = "The database does not accept changes."


class Database:
    """The database of one application.

    `reader` is the engine for a statement that only reads; it shares the connections of `engine`.
    `file` is None except on SQLite.
    """

    def __init__(self, app: Flask, config: Config) -> None:
        is_sqlite = config.database_url.startswith("sqlite")
        # What a URL of PostgreSQL says are parameters of the driver, see `_engine_options`.
        uri = config.database_url if is_sqlite else "postgresql+psycopg2://"
        app.config["SQLALCHEMY_DATABASE_URI"] = uri
        app.config["SQLALCHEMY_ENGINE_OPTIONS"] = _engine_options(config)
        db.init_app(app)
        self.schema = SchemaCheck()
        self._app = app
        with app.app_context():
            self.engine: Engine = db.engine
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self.file: SqliteFile | None = None
        # SQLite has one writer at a time. Whoever waits for it in C stops the event loop, and with
        # it the other greenlet of this process that would end its transaction.
        self._writer = threading.Lock()
        if self.is_sqlite:
            self.file = sqlite.install(self.engine)
        else:
            postgres.install(self.engine)
        self.reader = self.engine.execution_options(**READING)
        _note_statements(self.engine)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session whose changes are committed at the end, or rolled back on an error.

        Raises: DatabaseConnectionLost if they may be committed, or not.
        """
        with self._writing(), self._app.app_context():  # which removes the session at its end
            session = db.session()
            with _waiting():
                session.connection()
            yield session
            try:
                with _waiting():
                    session.commit()
            except DBAPIError as error:
                if error.connection_invalidated:
                    raise DatabaseConnectionLost from error
                raise

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Yield a session that only reads; every statement sees the newest committed state."""
        with self._app.app_context():
            session = db.session()
            with _waiting():
                session.connection(execution_options=READING)
            yield session

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Yield a connection that only reads: `reading` without a session, for the hot path."""
        with _waiting():
            connection = self.reader.connect()
        with connection:
            yield connection

    def require_writable(self, session: Session) -> None:
        """Make sure that the database accepts writes, without making one.

        Raises: DatabaseReadOnly, DatabaseUnavailable.
        """
        if self.file is not None:
            try:
                is_writable = self.file.is_writable()
            except sqlite.FileGone as error:
                raise DatabaseUnavailable from error
        else:
            # This is on for a standby as well, whatever its default_transaction_read_only is.
            is_writable = session.scalar(text("SHOW transaction_read_only")) == "off"
        if not is_writable:
            raise DatabaseReadOnly

    def on_statement(self, count: Callable[[], None]) -> None:
        """Call `count` for every statement."""
        event.listen(self.engine, "after_cursor_execute", lambda *_: count())

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def forget_inherited_connections(self) -> None:
        """Drop, after a fork, connections that belong to the parent process."""
        self.engine.dispose(close=False)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if not self.is_sqlite:
            yield
            return
        with _waiting():
            is_ours = self._writer.acquire(timeout=sqlite.LOCK_SECONDS)
        if not is_ours:
            raise DatabaseUnavailable
        try:
            yield
        finally:
            self._writer.release()


def _engine_options(config: Config) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "pool_size": config.database_pool,
        "max_overflow": 0,
        "pool_timeout": POOL_TIMEOUT_SECONDS,
        "hide_parameters": True,  # else unexpected errors would carry them into the log
    }
    if config.database_url.startswith("sqlite"):
        return usual
    return usual | {
        "pool_use_lifo": True,
        "pool_reset_on_return": None,  # a listener does it (postgres.py)
        "use_native_hstore": False,  # else each new connection queries for a type we lack
        "connect_args": postgres.connect_args(config.database_url),
    }


@contextmanager
def _waiting() -> Iterator[None]:
    """Add to the time that the request has waited for the database.

    Raises: DatabaseReadOnly, if the server of a new connection takes no writes.
    """
    began = perf_counter()
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, postgres.TakesNoWrites):
            raise DatabaseReadOnly from error
        raise
    finally:
        add_database_wait(perf_counter() - began)


def _note_statements(engine: Engine) -> None:
    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection: Connection, *_: Any) -> None:
        connection.info["began"] = perf_counter()

    @event.listens_for(engine, "after_cursor_execute")
    def end(connection: Connection, *_: Any) -> None:
        add_database_wait(perf_counter() - connection.info["began"])


class NoConnectionFree(Exception):
    """Every connection was in use for as long as a caller waits for one."""


def reason_of(error: BaseException) -> str:
    """Return, for the log, the driver's error, its code and its first line.

    Later lines may repeat values.
    """
    while (cause := _cause(error)) is not None:
        error = cause
    if isinstance(error, PoolTimeout):
        # SQLAlchemy's text speaks of its pool's options, which nobody here has set.
        error = NoConnectionFree(f"no connection was free for {POOL_TIMEOUT_SECONDS:g} s")
    if isinstance(error, AppError):
        return f"{type(error).__name__}: {error.message_with_remedy}"
    code = getattr(error, "pgcode", None) or getattr(error, "sqlite_errorname", None)
    what = f"{type(error).__name__} {code}" if code else type(error).__name__
    line = str(error).strip().partition("\n")[0]
    return f"{what}: {line}" if line else what


def _cause(error: BaseException) -> BaseException | None:
    """Return the error that one of SQLAlchemy's or of ours wraps."""
    orig: BaseException | None = getattr(error, "orig", None)
    return error.__cause__ if isinstance(error, AppError) else orig
