"""What the applications of one process share: routes and compiled statements.

Tests that cannot share an application have one of their own, with the same routes and statements
as all others. Building these again and again took a third of the suite's time.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from flask import Flask
from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache
from werkzeug.routing import Map, Rule, RuleFactory

# More than the service has statements, so that none is compiled twice.
STATEMENTS = 5000

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
