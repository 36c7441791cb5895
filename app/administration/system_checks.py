"""Checks of `flask doctor` on this machine and its servers: folders, keys, Redis, the database."""

import errno
import os
import sqlite3
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redis.exceptions import OutOfMemoryError, ReadOnlyError, RedisError, ResponseError
from sqlalchemy.exc import OperationalError

from app.administration.findings import Finding, fail, ok, warn
from app.avatars import files, render_process, rendering
from app.avatars.errors import FileTypeNotAllowed, RenderFailed
from app.core import redis as redis_client
from app.core.config import Argon2Cost
from app.core.database.revisions import TablesOutdated, revisions
from app.core.database.sqlite import kind_of
from app.core.runtime import Runtime

MAX_HASH_SECONDS = 1.0
# One SQLite page: a disk without room for that is as good as full.
TRIED_BYTES = 4096
# A machine that is busy for a moment must not be reported as slow.
TRIES = 3
ONE_PIXEL = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
OLDEST_REDIS = (6, 2)
OLDEST_POSTGRESQL = 13
MAX_SKEW_SECONDS = 5.0
NOBODY_LISTENS = (FileNotFoundError, ConnectionRefusedError)


def configuration(rt: Runtime) -> Finding:
    """Report what the environment configures; an invalid value would have aborted the start."""
    if unknown := rt.config.unknown_variables:
        return warn(f"{'. '.join(unknown)}. See docs/configuration.md.")
    database = "SQLite" if rt.database.is_sqlite else "PostgreSQL"
    redis = "the embedded Valkey" if rt.config.embedded_redis else "an external Redis"
    return ok(f"{database}, {redis}, instance folder {rt.config.instance}.")


def instance_folder(rt: Runtime) -> Finding:
    """Check that the folder is private to the service's own user, and writable."""
    folder = rt.config.instance
    try:
        _try_writing(folder)
    except OSError as error:
        remedy = _remedy(error, "Give it to the user the service runs as.")
        return fail(f"{folder} cannot be written ({error.strerror}). {remedy}")
    if mode := _open_to_others(folder):
        return warn(f"{folder} is open to others ({mode}). Run `chmod 700 {folder}`.")
    return ok("Private.")


def keys(rt: Runtime) -> Finding:
    """Check that the secret keys are present, and private to the service's own user."""
    if rt.keyring.problem is not None:
        return fail(rt.keyring.problem)
    count = len(rt.keyring.keys)
    if not rt.keyring.is_file:
        return ok(f"{count} from GATEHOUSE_SECRET_KEYS.")
    file = rt.keyring.path
    if mode := _open_to_others(file):
        remedy = f"Run `chmod 600 {file}`, then `flask keys rotate`."
        return fail(f"{file} is open to others ({mode}). {remedy}")
    return ok(f"{count} in {file}.")


def avatars(rt: Runtime) -> Finding:
    """Check that avatars can be rendered, and their folder written."""
    folder = rt.config.avatar_dir
    if missing := rendering.missing_formats():
        return fail(f"This Pillow lacks {', '.join(missing)}. Install it from its wheel.")
    try:
        _draw(folder)
    except OSError as error:
        remedy = _remedy(
            error, "Give it to the user the service runs as, or correct GATEHOUSE_AVATAR_DIR."
        )
        return fail(f"{folder} cannot be written ({error.strerror}). {remedy}")
    except (FileTypeNotAllowed, RenderFailed):
        return fail("No picture can be drawn. The log tells why.")
    return ok(f"In {folder}; pictures can be drawn.")


def _draw(folder: Path) -> None:
    staged = files.stage(folder, 0)
    try:
        staged.source.write_bytes(ONE_PIXEL)
        render_process.render(staged.source, staged.rendered)
    finally:
        staged.clear()


def password_hash(rt: Runtime) -> Finding:
    """Check that a hash is expensive enough for an attacker, yet affordable at login."""
    seconds = _least_hash_seconds(rt)
    cost, recommended = rt.config.argon2, Argon2Cost()
    if seconds > MAX_HASH_SECONDS:
        return warn(f"A hash takes {seconds:.1f} s. Lower GATEHOUSE_ARGON2, or use a faster CPU.")
    if cost.memory_kib * cost.passes < recommended.memory_kib * recommended.passes:
        usual = f"{recommended.memory_kib}/{recommended.passes}/{recommended.lanes}"
        return warn(f"GATEHOUSE_ARGON2 is below {usual}. Raise it, or leave it out.")
    return ok(f"A hash takes {1000 * seconds:.0f} ms.")


def _least_hash_seconds(rt: Runtime) -> float:
    """Return the time of the fastest of up to TRIES hashes; stop at one that is fast enough."""
    seconds: list[float] = []
    while len(seconds) < TRIES and (not seconds or seconds[-1] > MAX_HASH_SECONDS):
        began = rt.clock.monotonic()
        rt.passwords.hash("a password to measure with")
        seconds.append(rt.clock.monotonic() - began)
    return min(seconds)


def _try_writing(folder: Path) -> None:
    """Write a little and fsync it; the temporary file vanishes in any case."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x" * TRIED_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _remedy(error: OSError, otherwise: str) -> str:
    return "Make room there." if error.errno in (errno.ENOSPC, errno.EDQUOT) else otherwise


def _open_to_others(path: os.PathLike[str]) -> str | None:
    """Return the mode if it grants group or others any access, else None."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return f"{mode:04o}" if mode & 0o077 else None


def redis(rt: Runtime) -> Finding:
    """Check that Redis responds, accepts writes and is recent enough."""
    try:
        server: Any = rt.redis.client.info("server")
        redis_client.require_writable(rt.redis.client)
    except ResponseError as error:
        return fail(f"Redis refuses requests ({error}). {_redis_remedy(error)}")
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


def _redis_remedy(error: ResponseError) -> str:
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
    with rt.database.transaction() as session:
        session.connection().exec_driver_sql("CREATE TABLE examined (id INTEGER)")
        session.rollback()


def migrations(rt: Runtime) -> Finding:
    """Check that the tables are those of this version."""
    with rt.reading() as reader:
        found = revisions(reader)
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
        answer: Any = rt.redis.client.time()
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
