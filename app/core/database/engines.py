"""Engines: how to connect to each database, and how lost connections are replaced."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from app.core import wait_times
from app.core.config import Config
from app.core.database.driver_pool import is_closed_by_server

T = TypeVar("T")

POOL_TIMEOUT_SECONDS = 5
POOL_OPTIONS = {"pool_size", "max_overflow", "pool_timeout", "pool_use_lifo"}
# libpq's parameters unless the URL sets them. If a server vanishes silently, as in a failover, that
# is noticed within 25 seconds; the kernel by default takes a quarter of an hour or more.
POSTGRES_DEFAULTS = {
    "connect_timeout": 5,
    "application_name": "gatehouse",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # ms
}


def autocommit(config: Config, **pool: Any) -> Engine:
    """Return an engine in autocommit mode, so that there is never anything to roll back."""
    chosen = options(config) | pool
    if pool["poolclass"] is NullPool:
        for name in POOL_OPTIONS & chosen.keys():
            del chosen[name]
    return create_engine(
        config.database_url, isolation_level="AUTOCOMMIT", pool_reset_on_return=None, **chosen
    )


def options(config: Config) -> dict[str, Any]:
    """Return `create_engine`'s keyword arguments for an engine that pools its connections."""
    usual: dict[str, Any] = {
        "pool_size": config.database_pool,
        "max_overflow": 0,
        "pool_timeout": POOL_TIMEOUT_SECONDS,
        "hide_parameters": True,  # else unexpected errors would carry them into the log
    }
    if not config.database_url.startswith("sqlite"):
        usual["pool_use_lifo"] = True
        usual["use_native_hstore"] = False  # else each new connection queries for a type we lack
        named = make_url(config.database_url).query
        defaults = POSTGRES_DEFAULTS.items()
        usual["connect_args"] = {name: value for name, value in defaults if name not in named}
    return usual


def note_waits(engine: Engine) -> None:
    """Record how long statements, commits and waits for a connection take."""

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


def replace_closed(connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
    """Make the pool replace a connection that the server has closed, instead of failing a request.

    A new connection is not checked: the server has just answered on it.
    """
    if record.info.get("served") and is_closed_by_server(connection):
        raise InvalidatePoolError
    record.info["served"] = True
