"""Checks of `flask doctor` on this machine and its servers: folders, keys, Redis, the database."""

import os
import re
import stat
import tempfile
import timeit
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import sqlalchemy as sa
from redis.exceptions import RedisError, ResponseError

from app.avatars import files, render_process, rendering
from app.avatars.errors import FileTypeNotAllowed, RenderFailed
from app.core.clock import SKEW
from app.core.config import Argon2Cost
from app.core.runtime import Runtime
from app.core.texts import Sentence
from app.store import redis as redis_client
from app.store.database import DatabaseReadOnly
from app.store.revisions import TablesOutdated, revisions

MAX_HASH_SECONDS = 1.0
# A machine that is busy for a moment must not be reported as slow.
TRIES = 3
# One SQLite page: a disk without room for that is as good as full.
TRIED_BYTES = 4096
ONE_PIXEL = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
OPEN = "{path} is open to others ({mode})."
UNWRITABLE = (
    "{folder} cannot be written to ({reason}). Make room there, or give it to the user the service "
    "runs as."
)
UNWRITABLE_AVATARS = (
    "{folder} cannot be written to ({reason}). Make room there, or give it to the user the service "
    "runs as, or correct GATEHOUSE_AVATAR_DIR."
)
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
    sentences: Sequence[Sentence]
    remedy: str = ""

    @property
    def message(self) -> str:
        """All that is said but for the remedy."""
        return " ".join(map(str, self.sentences))

    @property
    def message_with_remedy(self) -> str:
        """The finding as the command line shows it."""
        return f"{self.message} {self.remedy}".rstrip()


def _found(
    level: Level, said: str | Sequence[Sentence], remedy: str = "", **values: object
) -> Finding:
    """Return a finding; `said` is sentences, or a template for the values."""
    return Finding(level, [Sentence(said, **values)] if isinstance(said, str) else said, remedy)


ok = partial(_found, Level.OK)
warn = partial(_found, Level.WARN)
fail = partial(_found, Level.FAIL)


def leaked_passwords(rt: Runtime) -> Finding:
    """Check that the list of leaked passwords can be used, by a password that every one has."""
    leaked = rt.passwords.leaked
    if leaked.path is None:
        return ok("No list of leaked passwords is set (GATEHOUSE_BREACHED_PASSWORDS).")
    try:
        is_there = leaked.has("password")
    except (OSError, ValueError) as error:
        return fail(
            "The list of leaked passwords cannot be used, and refuses none: {error}.", error=error
        )
    if not is_there:
        return warn("{path} lacks even the password 'password': is it complete?", path=leaked.path)
    return ok("New passwords are looked up in {path}.", path=leaked.path)


def configuration(rt: Runtime) -> Finding:
    """Report what the environment configures; an invalid value would have aborted the start."""
    if unknown := rt.config.unknown_variables:
        return warn("{unknown}. See docs/configuration.md.", unknown=". ".join(unknown))
    return ok(
        "{database}, the embedded Valkey, instance folder {folder}."
        if rt.config.embedded_redis
        else "{database}, an external Redis, instance folder {folder}.",
        database="SQLite" if rt.database.is_sqlite else "PostgreSQL",
        folder=rt.config.instance,
    )


def instance_folder(rt: Runtime) -> Finding:
    """Check that the folder is private to the service's own user, and writable."""
    folder = rt.config.instance
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * TRIED_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return fail(UNWRITABLE, folder=folder, reason=error.strerror)
    if mode := _open_to_others(folder):
        remedy = f"Run `chmod 700 {folder}`."
        return warn(OPEN, remedy, path=folder, mode=mode)
    return ok("Private.")


def secret_keys(rt: Runtime) -> Finding:
    """Check that the secret keys are present, and private to the service's own user."""
    if rt.keyring.problem is not None:
        return fail(rt.keyring.problem)
    count = len(rt.keyring.keys)
    if not rt.keyring.is_file:
        return ok("{count} from GATEHOUSE_SECRET_KEYS.", count=count)
    file = rt.keyring.path
    if mode := _open_to_others(file):
        remedy = f"Run `chmod 600 {file}`, then `flask keys rotate`."
        return fail(OPEN, remedy, path=file, mode=mode)
    return ok("{count} in {file}.", count=count, file=file)


def avatars(rt: Runtime) -> Finding:
    """Check that avatars can be rendered, and their folder written."""
    folder = rt.config.avatar_dir
    if missing := rendering.missing_formats():
        return fail(
            "This Pillow lacks {missing}. Install it from its wheel.", missing=", ".join(missing)
        )
    try:
        staged = files.stage(folder, 0)
        try:
            staged.source.write_bytes(ONE_PIXEL)
            render_process.render(staged.source, staged.rendered)
        finally:
            staged.clear()
    except OSError as error:
        return fail(UNWRITABLE_AVATARS, folder=folder, reason=error.strerror)
    except (FileTypeNotAllowed, RenderFailed):
        return fail("Pictures cannot be rendered. The log says why.")
    return ok("In {folder}; pictures can be rendered.", folder=folder)


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
        return warn(
            "A hash takes {seconds} s. Lower GATEHOUSE_ARGON2, or use a faster CPU.",
            seconds=f"{seconds:.1f}",
        )
    if cost.memory_kib * cost.passes < recommended.memory_kib * recommended.passes:
        usual = f"{recommended.memory_kib}/{recommended.passes}/{recommended.lanes}"
        return warn("GATEHOUSE_ARGON2 is below {usual}. Raise it, or leave it out.", usual=usual)
    return ok("A hash takes {milliseconds} ms.", milliseconds=f"{1000 * seconds:.0f}")


def redis(rt: Runtime) -> Finding:
    """Check that Redis responds, accepts writes and is recent enough."""
    is_embedded = rt.config.embedded_redis
    try:
        server: Any = rt.redis.client.info("server")
        if "cluster" in {server.get("redis_mode"), server.get("server_mode")}:  # Valkey: the latter
            return fail(
                "It is a node of a cluster, which cannot be used. Name a single server, or the "
                "Sentinels of one with replicas, in GATEHOUSE_REDIS_URL."
            )
        redis_client.require_writable(rt.redis.client)
    except ResponseError as error:
        return fail(
            "Redis refuses requests ({error}). Fix what it names (raise `maxmemory` if it is "
            "full, promote a replica), or correct GATEHOUSE_REDIS_URL.",
            error=error,
        )
    except RedisError as error:
        # The Redis error carries its cause only as text, so look at the chained exception.
        if is_embedded and isinstance(error.__context__, NOBODY_LISTENS):
            return warn("The embedded Valkey is not running.", "It runs while `bin/serve` does.")
        remedy = "Start it, or correct GATEHOUSE_REDIS_URL."
        if is_embedded:
            remedy = "Restart `bin/serve`, which runs the embedded Valkey."
        return fail("Redis does not answer ({error}).", remedy, error=error)
    version = str(server["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        return fail("Redis {version} is too old. Use 6.2 or later.", version=version)
    if "valkey_version" in server:
        return ok("Valkey {version}.", version=server["valkey_version"])
    return ok("Redis {version}.", version=version)


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
        if found == "wal":
            return ok("SQLite with a write-ahead log.")
        return fail("SQLite's journal is {found}, not WAL. Use a local disk.", found=found)
    if int(re.split(r"\D", found, maxsplit=1)[0]) < OLDEST_POSTGRESQL:  # 18beta1 is one, too
        return warn(
            "PostgreSQL {version} is out of support. Use {oldest} or later.",
            version=found,
            oldest=OLDEST_POSTGRESQL,
        )
    return ok("PostgreSQL {version}.", version=found)


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
            "The database is at {current}, which this version does not know: a newer one migrated "
            "it. Within one minor version, both work. Upgrade this instance as well.",
            current=current,
        )
    return ok("At {current}.", current=current)


def clock(rt: Runtime) -> Finding:
    """Check that machine, database and Redis agree on the time, which every expiry relies on."""
    ahead = {"Gatehouse": 0.0}  # of this machine, in seconds; SQLite has no clock of its own
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
        return fail(
            "{fastest} is {seconds} s ahead of {slowest}. Run NTP on both.",
            fastest=fastest,
            slowest=slowest,
            seconds=f"{skew:.0f}",
        )
    return ok("{names}: {seconds} s apart.", names=", ".join(ahead), seconds=f"{skew:.2f}")
