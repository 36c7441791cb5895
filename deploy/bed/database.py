"""PostgreSQL of the bed: a primary with its standby, and PgBouncer for those who go through it."""

import shutil
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import psycopg2

from app.serving.parent_death import before_exec
from tests.support.live import eventually
from tests.support.servers import NotStarted, PrivatePostgres, StandbyPostgres, unprivileged

NAME = "gatehouse"
SETTINGS = (
    # A confirmed change must survive a crash of PostgreSQL, but not one of this machine.
    "fsync=off",
    "full_page_writes=off",
    "min_wal_size=32MB",
    "max_wal_size=64MB",
    "wal_keep_size=64MB",
    # Commits wait for the standby, so it must be back soon after the primary is.
    "wal_retrieve_retry_interval=100ms",
)
PORT = 6432
# As docs/operations.md has it. Whatever is not said here is PgBouncer's default.
PGBOUNCER = """\
[databases]
{name} = host={host} dbname={name}

[pgbouncer]
unix_socket_dir = {folder}
listen_port = {port}
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = transaction
query_timeout = 5
query_wait_timeout = 5
server_login_retry = 1
"""


class Pair:
    """A primary and its hot standby, which has each change before it is confirmed.

    A context manager. `primary` is whichever takes writes; it is also the `standby` while it has
    none.
    """

    def __init__(self, one: Path, other: Path) -> None:
        self.primary = PrivatePostgres(one, SETTINGS)
        self.standby = StandbyPostgres(other, self.primary, SETTINGS)
        self.url = f"postgresql://postgres@/{NAME}?host={one},{other}"
        self.url += "&target_session_attrs=read-write"
        self._lost = self.primary
        self._stack = ExitStack()

    def __enter__(self) -> "Pair":
        with ExitStack() as self._stack:
            self._stack.enter_context(self.primary)
            self.primary.cluster.create(NAME)
            self._begin_to_follow()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def fail_over(self) -> None:
        """Crash the primary, as if its machine died, and promote the standby."""
        self._lost = self.primary
        self._lost.crash()
        self.standby.promote()
        self.primary = self.standby

    def renew_standby(self) -> None:
        """Make the lost primary a standby of the new one, with a new copy of its data."""
        if self.standby is not self.primary:
            return
        folder = self._lost.folder
        shutil.rmtree(folder / "data")
        self.standby = StandbyPostgres(folder, self.primary, SETTINGS)
        self._begin_to_follow()

    def _begin_to_follow(self) -> None:
        """Start the standby; from then on, commits wait for it.

        It has its own copy of the setting, made before: once promoted, it waits for nobody.
        """
        self._stack.enter_context(self.standby)
        ask, execute = self.primary.cluster.ask, self.primary.cluster.execute
        streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        eventually(lambda: ask(streaming), "the standby to follow")
        execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        execute("SELECT pg_reload_conf()")


def find_pgbouncer() -> str | None:
    """Return the path of PgBouncer's executable; None without it."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


class PgBouncer:
    """PgBouncer in transaction mode, which leads to one server; a context manager.

    It tells clients for good whether the server was a standby when first connected to; hence `any`.
    """

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._log = folder / "pgbouncer.log"
        folder.mkdir()
        (folder / "users.txt").write_text('"postgres" ""\n')
        self._user = unprivileged(folder)
        self.url = f"postgresql://postgres@/{NAME}?host={folder}&port={PORT}"
        self.url += "&target_session_attrs=any"

    def __enter__(self) -> "PgBouncer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, for the first time or again; `lead_to` must have been called."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [self._program, "-q", str(self._configuration)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                start_new_session=True,
                preexec_fn=before_exec(),
                **self._user,
            )
        eventually(self._answers, "PgBouncer")

    def stop(self) -> None:
        """Stop it at once; every connection is cut."""
        self._process.terminate()
        self._process.wait(10)

    def lead_to(self, server: PrivatePostgres) -> None:
        """Lead to a server from now on, as whoever promotes a standby has to tell PgBouncer."""
        text = PGBOUNCER.format(name=NAME, host=server.folder, folder=self._folder, port=PORT)
        self._configuration.write_text(text)

    def reload(self) -> None:
        """Let it read its configuration again; connections to an old server are given up."""
        self._process.send_signal(signal.SIGHUP)

    @property
    def _configuration(self) -> Path:
        return self._folder / "pgbouncer.ini"

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise NotStarted(self._log.read_text(errors="replace")[-3000:])
        try:
            psycopg2.connect(self.url).close()
        except psycopg2.OperationalError:
            return False
        return True
