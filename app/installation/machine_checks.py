"""Checks of `flask doctor` on this machine and its servers: folders, keys, Redis, the database."""

import os
import re
import stat
import tempfile
import timeit
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from redis.exceptions import RedisError, ResponseError

from app.avatars import files, render_process, rendering
from app.avatars.errors import FileTypeNotAllowed, RenderFailed
from app.core.clock import SKEW
from app.core.config import Argon2Cost
from app.core.runtime import Runtime
from app.store import redis as redis_client
from app.store.database import DatabaseReadOnly
from app.store.revisions import TablesOutdated, revisions

MAX_HASH_SECONDS = 1.0
# A machine that is busy for a moment must not be reported as slow.
TRIES = 3
# One SQLite page: a disk without room for that is as good as full.
TRIED_BYTES = 4096
ONE_PIXEL = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
OLDEST_REDIS = (6, 2)
OLDEST_POSTGRESQL = 13
NOBODY_LISTENS = (FileNotFoundError, ConnectionRefusedError)


class Level(StrEnum):
    """The severity: `fail` keeps the service from working, `warn` should be looked into."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """What one check found, in plain words, with the remedy unless the level is `ok`.

    `remedy` takes a command line, the only place that shows it.
    """

    level: Level
    message: str
    remedy: str = ""

    @property
    def message_with_remedy(self) -> str:
        """The finding as the command line shows it."""
        return f"{self.message} {self.remedy}".rstrip()


ok = partial(Finding, Level.OK)
warn = partial(Finding, Level.WARN)
fail = partial(Finding, Level.FAIL)


def leaked_passwords(rt: Runtime) -> Finding:
    """Check that the list of leaked passwords can be used, by a password that every one has."""
    leaked = rt.passwords.leaked
    if leaked.path is None:
        return ok("No list of leaked passwords is set (GATEHOUSE_BREACHED_PASSWORDS).")
    try:
        is_there = leaked.has("password")
    except (OSError, ValueError) as error:
        return fail(f"The list of leaked passwords cannot be used, and refuses none: {error}.")
    if not is_there:
        return warn(f"{leaked.path} lacks even the password 'password': is it complete?")
    return ok(f"New passwords are looked up in {leaked.path}.")


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
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * TRIED_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return _unwritable(folder, error)
    if mode := _open_to_others(folder):
        return warn(f"{folder} is open to others ({mode}).", f"Run `chmod 700 {folder}`.")
    return ok("Private.")


def secret_keys(rt: Runtime) -> Finding:
    """Check that the secret keys are present, and private to the service's own user."""
    if rt.keyring.problem is not None:
        return fail(rt.keyring.problem)
    count = len(rt.keyring.keys)
    if not rt.keyring.is_file:
        return ok(f"{count} from GATEHOUSE_SECRET_KEYS.")
    file = rt.keyring.path
    if mode := _open_to_others(file):
        remedy = f"Run `chmod 600 {file}`, then `flask keys rotate`."
        return fail(f"{file} is open to others ({mode}).", remedy)
    return ok(f"{count} in {file}.")


def avatars(rt: Runtime) -> Finding:
    """Check that avatars can be rendered, and their folder written."""
    folder = rt.config.avatar_dir
    if missing := rendering.missing_formats():
        return fail(f"This Pillow lacks {', '.join(missing)}. Install it from its wheel.")
    try:
        staged = files.stage(folder, 0)
        try:
            staged.source.write_bytes(ONE_PIXEL)
            render_process.render(staged.source, staged.rendered)
        finally:
            staged.clear()
    except OSError as error:
        return _unwritable(folder, error, ", or correct GATEHOUSE_AVATAR_DIR")
    except (FileTypeNotAllowed, RenderFailed):
        return fail("Pictures cannot be rendered. The log says why.")
    return ok(f"In {folder}; pictures can be rendered.")


def _unwritable(folder: Path, error: OSError, or_else: str = "") -> Finding:
    return fail(
        f"{folder} cannot be written to ({error.strerror}). "
        f"Make room there, or give it to the user the service runs as{or_else}."
    )


def _open_to_others(path: os.PathLike[str]) -> str | None:
    """Return the mode if it grants group or others any access, else None."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return f"{mode:04o}" if mode & 0o077 else None


def password_hash(rt: Runtime) -> Finding:
    """Check that a hash is expensive enough for an attacker, yet affordable at login."""
    hash_once = partial(rt.passwords.hash, "a password to measure with")
    seconds = min(timeit.repeat(hash_once, timer=rt.clock.monotonic, repeat=TRIES, number=1))
    cost, recommended = rt.config.argon2, Argon2Cost()
    if seconds > MAX_HASH_SECONDS:
        return warn(f"A hash takes {seconds:.1f} s. Lower GATEHOUSE_ARGON2, or use a faster CPU.")
    if cost.memory_kib * cost.passes < recommended.memory_kib * recommended.passes:
        usual = f"{recommended.memory_kib}/{recommended.passes}/{recommended.lanes}"
        return warn(f"GATEHOUSE_ARGON2 is below {usual}. Raise it, or leave it out.")
    return ok(f"A hash takes {1000 * seconds:.0f} ms.")


def redis(rt: Runtime) -> Finding:
    """Check that Redis responds, accepts writes and is recent enough."""
    is_embedded = rt.config.embedded_redis
    try:
        server: Any = rt.redis.client.info("server")
        redis_client.require_writable(rt.redis.client)
    except ResponseError as error:
        return fail(
            f"Redis refuses requests ({error}). Fix what it names (raise `maxmemory` if it is "
            "full, promote a replica), or correct GATEHOUSE_REDIS_URL."
        )
    except RedisError as error:
        # The Redis error carries its cause only as text, so look at the chained exception.
        if is_embedded and isinstance(error.__context__, NOBODY_LISTENS):
            return warn("The embedded Valkey is not running.", "It runs while `bin/serve` does.")
        remedy = "Start it, or correct GATEHOUSE_REDIS_URL."
        if is_embedded:
            remedy = "Restart `bin/serve`, which runs the embedded Valkey."
        return fail(f"Redis does not answer ({error}).", remedy)
    version = str(server["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        return fail(f"Redis {version} is too old. Use 6.2 or later.")
    return ok(
        f"Valkey {server['valkey_version']}." if "valkey_version" in server else f"Redis {version}."
    )


def database(rt: Runtime) -> Finding:
    """Check that the database responds, accepts writes and is set up as this service needs it."""
    setting = "PRAGMA journal_mode" if rt.database.is_sqlite else "SHOW server_version"
    try:
        with rt.reading() as session:
            found = str(session.execute(sa.text(setting)).scalar())
            rt.database.require_writable(session)
    except DatabaseReadOnly:
        return fail(
            "The database cannot be written to. Give an SQLite file to the user the service "
            "runs as, promote a PostgreSQL standby, reset `default_transaction_read_only`, "
            "or correct GATEHOUSE_DATABASE_URL."
        )
    if rt.database.is_sqlite:
        is_wal = found == "wal"
        wrong = f"SQLite's journal is {found}, not WAL. Use a local disk."
        return ok("SQLite with a write-ahead log.") if is_wal else fail(wrong)
    if int(re.split(r"\D", found, maxsplit=1)[0]) < OLDEST_POSTGRESQL:  # 18beta1 is one, too
        return warn(f"PostgreSQL {found} is out of support. Use {OLDEST_POSTGRESQL} or later.")
    return ok(f"PostgreSQL {found}.")


def migrations(rt: Runtime) -> Finding:
    """Check that the tables are those of this version."""
    with rt.reading() as session:
        found = revisions(session)
    if found.is_older:
        outdated = TablesOutdated(found)
        return fail(outdated.public_message, outdated.remedy)
    current = ", ".join(sorted(found.current))
    if found.is_newer:
        return warn(
            f"The database is at {current}, which this version does not know: a newer one migrated "
            "it. Within one minor version, both work. Upgrade this instance as well."
        )
    return ok(f"At {current}.")


def clock(rt: Runtime) -> Finding:
    """Check that machine, database and Redis agree on the time, which every expiry relies on."""
    ahead = {"This machine": 0.0}  # of this machine, in seconds; SQLite has no clock of its own
    if not rt.database.is_sqlite:
        with rt.reading() as session:
            theirs = session.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
            ahead["PostgreSQL"] = (theirs - rt.clock.now()).total_seconds()
    with suppress(RedisError):  # which the "redis" check reports
        answer: Any = rt.redis.client.time()
        ahead["Redis"] = answer[0] + answer[1] / 1e6 - rt.clock.now().timestamp()
    slowest, fastest = (pick(ahead, key=ahead.__getitem__) for pick in (min, max))
    skew = ahead[fastest] - ahead[slowest]
    if skew >= SKEW.total_seconds():
        return fail(f"{fastest} is {skew:.0f} s ahead of {slowest}. Run NTP on both.")
    return ok(f"{', '.join(ahead)}: {skew:.2f} s apart.")
