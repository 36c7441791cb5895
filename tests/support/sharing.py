"""What the applications of one process share: routes, compiled statements, idle connections.

Every test has an application of its own, with the same routes and statements as all others, on an
equally fresh database. Building these again and again took a third of the suite's time.
"""

import select
import threading
from collections.abc import Callable
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import psycopg2
from flask import Flask
from psycopg2.extensions import STATUS_READY
from sqlalchemy import Engine, make_url
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache
from werkzeug.routing import Map, Rule, RuleFactory

# More than the service has statements, so that none is compiled twice.
STATEMENTS = 5000
# More than an ordinary test has open at once.
KEPT_CONNECTIONS = 6

_statements: LRUCache[Any, Any] = LRUCache(STATEMENTS)


def install() -> None:
    """Make every application created from now on reuse what earlier ones have left."""
    Flask.url_map_class = _SharedMap
    # Statements are cached by dialect, and each engine has its own: those of a kind must be equal.
    dialects: Any = DefaultDialect
    dialects.__eq__ = _is_alike
    dialects.__hash__ = _hash_of_kind
    Engine._compiled_cache = property(lambda _: _statements, lambda *_: None)  # type: ignore[assignment]
    for dialect in (PGDialect_psycopg2, SQLiteDialect_pysqlite):
        dialect.initialize = _learning_once(dialect.initialize)  # type: ignore[method-assign]


class KeptConnections:
    """Keeps connections to one PostgreSQL database that an application closes, for the next one.

    Connections that an application discards as broken are really closed.
    """

    def __init__(self, url: str) -> None:
        self._database = make_url(url).database
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._made_with: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()

    def install(self) -> None:
        """Intercept how SQLAlchemy opens and closes connections from now on."""
        dialect: Any = PGDialect_psycopg2
        dialect.connect = lambda _, _dsn="", **options: self._connect(options)
        dialect.do_close = lambda _, connection: self._close(connection)
        dialect.do_terminate = lambda _, connection: connection.close()

    def close(self) -> None:
        """Close all connections; from now on none is kept."""
        for name in ("connect", "do_close", "do_terminate"):
            delattr(PGDialect_psycopg2, name)
        for connection in self._idle:
            connection.close()

    def _connect(self, options: dict[str, Any]) -> Any:
        with self._lock:
            alike = [c for c in self._idle if self._made_with[c] == options]
            for connection in alike:
                self._idle.remove(connection)
                if not connection.closed and not _is_readable(connection):
                    return connection
        connection = psycopg2.connect(**options)
        if options.get("dbname") == self._database:
            self._made_with[connection] = options
        return connection

    def _close(self, connection: Any) -> None:
        if connection not in self._made_with or not self._is_reset(connection):
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)
            surplus = self._idle[:-KEPT_CONNECTIONS]
            del self._idle[:-KEPT_CONNECTIONS]
        for connection in surplus:
            connection.close()

    def _is_reset(self, connection: Any) -> bool:
        """Reset a connection to the state of a new one; return False if that fails."""
        try:
            if connection.status != STATUS_READY:
                connection.rollback()
            connection.set_session(isolation_level="DEFAULT", readonly="DEFAULT", autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute("DISCARD ALL")
            connection.autocommit = False
        except psycopg2.Error:
            return False
        return True


def share_routes(app: Flask) -> None:
    """Make all applications share the routes of the first; assert that theirs are the same."""
    if _SharedMap.first is None:
        _SharedMap.first = app
    assert app.view_functions.keys() == _SharedMap.first.view_functions.keys()


class _SharedMap(Map):
    """A URL map that shares the rules of the first application, once there is one."""

    first: ClassVar[Flask | None] = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_shared = _SharedMap.first is not None
        if _SharedMap.first is not None:
            self._matcher = _SharedMap.first.url_map._matcher
            self._rules_by_endpoint = _SharedMap.first.url_map._rules_by_endpoint

    def add(self, rulefactory: RuleFactory) -> None:
        """Add a rule, or assert that the first application has it."""
        if not self._is_shared:
            super().add(rulefactory)
            return
        assert isinstance(rulefactory, Rule)
        known = self._rules_by_endpoint.get(rulefactory.endpoint, ())
        alike = [(rule.rule, rule.methods) for rule in known]
        assert (rulefactory.rule, rulefactory.methods) in alike, f"{rulefactory} is of one app only"


def _is_readable(connection: Any) -> bool:
    """Return whether the server has sent something unasked, or closed the connection."""
    return bool(select.select([connection.fileno()], [], [], 0)[0])


def _learning_once(initialize: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Let one dialect query the server's capabilities, and copy them to the others."""
    learned: dict[str, Any] = {}

    def learn(dialect: Any, connection: Any) -> None:
        if not learned:
            before = dict(vars(dialect))
            initialize(dialect, connection)
            learned.update(
                {k: v for k, v in vars(dialect).items() if k not in before or before[k] is not v}
            )
        vars(dialect).update(learned)

    return learn


def _is_alike(dialect: DefaultDialect, other: object) -> bool:
    return type(dialect) is type(other)


def _hash_of_kind(dialect: DefaultDialect) -> int:
    return hash(type(dialect))
