"""Engines: how each database is connected to, and how a connection that was lost is replaced."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from app.core import wait_times
from app.core.config import Config
from app.core.database.driver_pool import was_hung_up

T = TypeVar("T")

POOL_PATIENCE_SECONDS = 5
POOL_OPTIONS = {"pool_size", "max_overflow", "pool_timeout", "pool_use_lifo"}
# What libpq is told unless the URL says otherwise. A server that vanished without a word, as in a
# failover, is noticed within 25 seconds; the kernel by itself takes a quarter of an hour or more.
POSTGRES_DEFAULTS = {
    "connect_timeout": 5,
    "application_name": "gatehouse",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # ms
}


def autocommit(config: Config, **pool: Any) -> Engine:
    """Return an engine whose statements stand alone, so that nothing is left to undo."""
    chosen = options(config) | pool
    if pool["poolclass"] is NullPool:
        for name in POOL_OPTIONS & chosen.keys():
            del chosen[name]
    return create_engine(
        config.database_url, isolation_level="AUTOCOMMIT", pool_reset_on_return=None, **chosen
    )


def options(config: Config) -> dict[str, Any]:
    """Return what `create_engine` is told for an engine that pools its connections."""
    usual: dict[str, Any] = {
        "pool_size": config.database_pool,
        "max_overflow": 0,
        "pool_timeout": POOL_PATIENCE_SECONDS,
        "hide_parameters": True,  # they would end up in the log with an unexpected error
    }
    if not config.database_url.startswith("sqlite"):
        usual["pool_use_lifo"] = True
        usual["use_native_hstore"] = False  # else every new connection asks for a type we lack
        named = make_url(config.database_url).query
        defaults = POSTGRES_DEFAULTS.items()
        usual["connect_args"] = {name: value for name, value in defaults if name not in named}
    return usual


def note_waits(engine: Engine) -> None:
    """Note how long statements, commits and waiting for a connection take."""

    def noted(call: Callable[..., T]) -> Callable[..., T]:
        def timed(*arguments: Any, **options: Any) -> T:
            began = perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                wait_times.add_database(perf_counter() - began)

        return timed

    for name in ("do_execute", "do_executemany", "do_commit"):
        setattr(engine.dialect, name, noted(getattr(engine.dialect, name)))
    engine.raw_connection = noted(engine.raw_connection)  # type: ignore[method-assign]


def refuse_hung_up(connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
    """Have the pool replace what the server has hung up on, instead of failing a request with it.

    A connection that is new was just spoken to.
    """
    if record.info.get("served") and was_hung_up(connection):
        raise InvalidatePoolError
    record.info["served"] = True
