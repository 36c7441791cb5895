"""What the applications of one process share: what werkzeug and SQLAlchemy compile for them.

Every test has an application of its own, with the same routes and statements as all others. A third
of the suite's time went into compiling them anew.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache
from werkzeug.routing import Rule

# More than the service has statements, so that none is compiled twice.
STATEMENTS = 5000

_compile_builder = Rule._compile_builder
_builders: dict[tuple[Any, ...], Callable[..., tuple[str, str]]] = {}
_statements: LRUCache[Any, Any] = LRUCache(STATEMENTS)


def share_compiled() -> None:
    """Have every rule and engine made from now on look for what another has compiled."""
    Rule._compile_builder = _shared_builder  # type: ignore[method-assign]
    # Statements are kept by their dialect, and each engine makes one: those of a kind are alike.
    DefaultDialect.__eq__ = _is_alike  # type: ignore[assignment, method-assign]
    DefaultDialect.__hash__ = _hash_of_kind  # type: ignore[method-assign]
    Engine._compiled_cache = property(lambda _: _statements, lambda *_: None)  # type: ignore[assignment]


def _shared_builder(rule: Rule, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
    if rule.defaults:
        return _compile_builder(rule, append_unknown)
    key = (*rule._trace, append_unknown)
    if key not in _builders:
        _builders[key] = _compile_builder(rule, append_unknown)
    return _builders[key]


def _is_alike(dialect: DefaultDialect, other: object) -> bool:
    return type(dialect) is type(other)


def _hash_of_kind(dialect: DefaultDialect) -> int:
    return hash(type(dialect))
