"""Checks of `flask doctor` on Redis and the database servers."""

import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from redis.exceptions import OutOfMemoryError, ReadOnlyError, RedisError, ResponseError
from sqlalchemy.exc import OperationalError

from app.administration.findings import Finding, fail, ok, warn
from app.administration.migrations import revisions
from app.core import redis as redis_client
from app.core.database.revisions import TablesOutdated
from app.core.database.sqlite import kind_of
from app.core.runtime import Runtime

OLDEST_REDIS = (6, 2)
OLDEST_POSTGRESQL = 13
MAX_SKEW_SECONDS = 5.0
NOBODY_LISTENS = (FileNotFoundError, ConnectionRefusedError)


def redis(rt: Runtime) -> Finding:
    """Check that Redis responds, accepts writes and is recent enough."""
    try:
        server: Any = rt.redis.info("server")
        redis_client.require_writable(rt.redis)
    except ResponseError as error:
        return fail(f"Redis refuses requests ({error}). {_remedy(error)}")
    except RedisError as error:
        if not rt.config.embedded_redis:
            raise
        # The Redis error carries its cause only as text, so look at the chained exception.
        if isinstance(error.__context__, NOBODY_LISTENS):
            return warn("The embedded Valkey is not running; it runs while `bin/serve` does.")
        return fail(
            f"Redis does not answer ({error}). Restart `bin/serve`, which runs the embedded Valkey."
        )
    version = str(server["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        return fail(f"Redis {version} is too old. Use 6.2 or later.")
    if "valkey_version" in server:
        return ok(f"Valkey {server['valkey_version']}.")
    return ok(f"Redis {version}.")


def _remedy(error: ResponseError) -> str:
    if isinstance(error, OutOfMemoryError):
        return "Raise its `maxmemory`, or wait until something expires."
    if isinstance(error, ReadOnlyError):
        return "It is a replica: promote it, or correct GATEHOUSE_REDIS_URL."
    return "Correct what it names, or GATEHOUSE_REDIS_URL."


def database(rt: Runtime) -> Finding:
    """Check that the database responds, accepts writes and is set up as this service needs it."""
    if rt.database.is_sqlite:
        return _sqlite(rt)
    with rt.reading() as session:
        connection = session.connection()
        version = connection.exec_driver_sql("SHOW server_version").scalar()
        is_read_only = connection.exec_driver_sql("SHOW transaction_read_only").scalar() == "on"
        is_standby = connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar()
    if is_standby:
        return fail("This PostgreSQL is a standby. Promote it, or correct GATEHOUSE_DATABASE_URL.")
    if is_read_only:
        return fail("PostgreSQL is set to read only. Reset `default_transaction_read_only`.")
    if int(str(version).partition(".")[0]) < OLDEST_POSTGRESQL:
        return warn(f"PostgreSQL {version} is out of support. Use {OLDEST_POSTGRESQL} or later.")
    return ok(f"PostgreSQL {version}.")


def _sqlite(rt: Runtime) -> Finding:
    with rt.reading() as session:
        mode = session.connection().exec_driver_sql("PRAGMA journal_mode").scalar()
    if mode != "wal":
        return fail(f"SQLite's journal is {mode}, not WAL. Use a local disk.")
    try:
        _change_and_undo(rt)
    except OperationalError as error:
        if kind_of(error) != sqlite3.SQLITE_READONLY:
            raise
        file = rt.database.engine.url.database
        return fail(f"{file} cannot be written. Give it to the user the service runs as.")
    return ok("SQLite with a write-ahead log.")


def _change_and_undo(rt: Runtime) -> None:
    """Make a change and roll it back: a read-only database lets a transaction begin, too."""
    with suppress(_Undone), rt.database.transaction() as session:
        session.connection().exec_driver_sql("CREATE TABLE examined (id INTEGER)")
        raise _Undone


class _Undone(Exception):
    """Rolls back a transaction on purpose."""


def migrations(rt: Runtime) -> Finding:
    """Check that the tables are those of this version."""
    found = revisions(rt)
    if found.is_older:
        return fail(TablesOutdated(found).public_message)
    current = ", ".join(sorted(found.current))
    if found.is_newer:
        return warn(
            f"The database is at {current}, which this version does not know: a newer one migrated "
            "it. Within one minor version this one goes on with it. Upgrade this instance as well."
        )
    return ok(f"At {current}.")


def clock(rt: Runtime) -> Finding:
    """Check that machine, database and Redis agree on the time, which every expiry relies on."""
    offsets = {"This machine": 0.0, **_offsets(rt)}
    if len(offsets) == 1:
        return ok("No other clock is in use that could differ.")
    slowest, fastest = (pick(offsets, key=offsets.__getitem__) for pick in (min, max))
    skew = offsets[fastest] - offsets[slowest]
    if skew >= MAX_SKEW_SECONDS:
        return fail(f"{fastest} is {skew:.0f} s ahead of {slowest}. Run NTP on both.")
    return ok(f"{', '.join(offsets)}: {skew:.2f} s apart.")


def _offsets(rt: Runtime) -> dict[str, float]:
    """Return by how many seconds each server's clock is ahead; SQLite has no clock of its own."""
    offsets = {}
    if not rt.database.is_sqlite:
        with rt.reading() as session:
            asked = rt.clock.now()
            theirs: Any = session.connection().exec_driver_sql("SELECT clock_timestamp()").scalar()
            offsets["PostgreSQL"] = _ahead(rt, asked, theirs)
    try:
        asked = rt.clock.now()
        answer: Any = rt.redis.time()
        seconds, microseconds = answer
        theirs = datetime.fromtimestamp(seconds + microseconds / 1e6, UTC)
        offsets["Redis"] = _ahead(rt, asked, theirs)
    except RedisError:
        pass  # the "redis" check reports this
    return offsets


def _ahead(rt: Runtime, asked: datetime, theirs: datetime) -> float:
    """Compare with the midpoint between request and response, to cancel out the round trip."""
    answered = rt.clock.now()
    return (theirs - (asked + (answered - asked) / 2)).total_seconds()
