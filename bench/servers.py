"""Starts the servers to measure: the service with Valkey and database, the bare Flask route."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psycopg2

from app.serving.parent_death import before_exec
from bench import procs
from bench.api import Api
from deploy.bed.proxy import Proxy
from tests.support.servers import NotStarted, PrivatePostgres, PrivateValkey

ROOT = Path(__file__).resolve().parent.parent
WORKERS = 2
START_SECONDS = 60.0
BEHIND_NGINX = {
    "GATEHOUSE_TRUSTED_PROXIES": "127.0.0.1",
    "GATEHOUSE_AVATAR_ACCEL": "/internal/avatars",
}


def free_port() -> int:
    """Return a TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A child process in its own session, so that Ctrl-C reaches only this program."""

    def __init__(self, argv: list[str], log: Path, stop: signal.Signals, **popen: Any) -> None:
        self._stop_signal = stop
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=before_exec(stop),
                **popen,
            )

    @property
    def pid(self) -> int:
        """The process id of the root of the server's process tree."""
        return self.process.pid

    def not_started(self) -> NotStarted:
        """Return the error for a failed start, with the end of the log."""
        return NotStarted(f"{self.process.args!r}:\n{self.log.read_text()[-3000:]}")

    def stop(self) -> None:
        """Stop it; kill its process group if it does not react within 20 s."""
        if self.process.poll() is not None:
            return
        self.process.send_signal(self._stop_signal)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()


class Postgres:
    """A private PostgreSQL with its default durability."""

    def __init__(self, stack: ExitStack) -> None:
        self.folder = temporary_folder(stack)
        self._server = stack.enter_context(PrivatePostgres(self.folder, settings=()))

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        return self._server.pid

    @property
    def is_running(self) -> bool:
        """Whether the postmaster is running."""
        return self._server.is_running

    def connect(self, database: str) -> Any:
        """Return an autocommit connection."""
        connection = psycopg2.connect(host=str(self.folder), user="postgres", dbname=database)
        connection.autocommit = True
        return connection

    def create(self, database: str) -> str:
        """Create a database and return its URL."""
        return self._server.cluster.create(database)

    def dsn(self, database: str) -> str:
        """Create a database and return its libpq connection string."""
        self.create(database)
        return f"host={self.folder} user=postgres dbname={database}"


def temporary_folder(stack: ExitStack) -> Path:
    """Return a private folder, removed at the end; its path is short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix="ghbench"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Running:
    """A server with WORKERS workers on a local port; `parts` are the processes to count CPU of."""

    def __init__(self, argv: list[str], port: int, log: Path, health: str, **popen: Any) -> None:
        self.port = port
        self.api = Api(port, log)
        self.server = Server(argv, log, signal.SIGTERM, **popen)
        self.parts = {"server": self.server.pid}
        self._wait(health)

    @property
    def is_running(self) -> bool:
        """Whether its root process is running."""
        return self.server.process.poll() is None

    def _wait(self, path: str) -> None:
        end = monotonic() + START_SECONDS
        while True:
            with suppress(OSError):
                if self.api.call("GET", path).status < 500:
                    break
            if self.server.process.poll() is not None or monotonic() > end:
                self.server.stop()
                raise self.server.not_started()
            sleep(0.1)
        while len(self.workers()) < WORKERS:
            sleep(0.1)

    def put_behind_nginx(self, stack: ExitStack, folder: Path) -> None:
        """Send the load through nginx with the configuration of deploy/, but without TLS."""
        proxy = Proxy(folder / "front", [self.port], folder / "avatars", tls=False)
        proxy.start()
        stack.callback(proxy.stop)
        self.port = proxy.port
        self.parts["nginx"] = proxy.pid

    def workers(self) -> list[int]:
        """Return the process ids of the workers."""
        table = procs.sample().processes
        return sorted(pid for pid, p in table.items() if p.parent == self.server.pid)


class Gunicorn(Running):
    """A gunicorn with the project's settings."""

    def __init__(self, app: str, folder: Path, env: dict[str, str], conf: str, health: str) -> None:
        port, log = free_port(), folder / "gunicorn.log"
        env = os.environ | env | {"GATEHOUSE_BIND": f"127.0.0.1:{port}"}
        argv = [sys.executable, "-m", "gunicorn", "-c", conf, app]
        super().__init__(argv, port, log, health, cwd=ROOT, env=env)


class Bare(Gunicorn):
    """The bare Flask route under the same gunicorn settings."""

    def __init__(self, stack: ExitStack, *, nginx: bool = False) -> None:
        folder = temporary_folder(stack)
        env = {"GATEHOUSE_INSTANCE": str(folder)}
        super().__init__("bench.bare:app", folder, env, "bench/bare_conf.py", "/")
        stack.callback(self.server.stop)
        if nginx:
            self.put_behind_nginx(stack, folder)


class Least(Gunicorn):
    """The application of bench/least.py under the same gunicorn settings."""

    def __init__(self, stack: ExitStack, postgres: Postgres | None, name: str) -> None:
        folder = temporary_folder(stack)
        store = stack.enter_context(PrivateValkey(folder, persist=True))
        env = {
            "GATEHOUSE_INSTANCE": str(folder),
            "LEAST_REDIS_URL": store.url,
            "LEAST_DATABASE_URL": postgres.dsn(name)
            if postgres
            else f"sqlite:///{folder}/least.db",
        }
        subprocess.run(
            [sys.executable, "-m", "bench.least"], cwd=ROOT, env=os.environ | env, check=True
        )
        super().__init__("bench.least:make_app()", folder, env, "bench/bare_conf.py", "/health")
        stack.callback(self.server.stop)
        self.parts["valkey"] = store.pid
        if postgres:
            self.parts["postgres"] = postgres.pid


class Service(Gunicorn):
    """Gatehouse in an instance folder of its own, with its first administrator."""

    ADMIN = "admin"

    def __init__(
        self,
        stack: ExitStack,
        postgres: Postgres | None,
        name: str,
        *,
        nginx: bool = False,
        **env: str,
    ) -> None:
        folder = temporary_folder(stack)
        self.postgres, self.database = postgres, name
        self.folder = folder
        store = stack.enter_context(PrivateValkey(folder, persist=True))
        self.redis_url = store.url
        self.sqlite_file = folder / "gatehouse.db"
        url = postgres.create(name) if postgres else f"sqlite:///{self.sqlite_file}"
        settings = {
            "GATEHOUSE_INSTANCE": str(folder),
            "GATEHOUSE_DATABASE_URL": url,
            "GATEHOUSE_REDIS_URL": self.redis_url,
            "GATEHOUSE_STORAGE_BOOTSTRAP": "local",
            "GATEHOUSE_RATE_LIMITS": "off",
            **(BEHIND_NGINX if nginx else {}),
            **env,
        }
        self._env = os.environ | settings
        self.flask("prepare")  # as `bin/serve` does before it starts gunicorn
        super().__init__("wsgi:app", folder, settings, "gunicorn.conf.py", "/health")
        stack.callback(self.server.stop)
        self.api.setup(self.ADMIN)
        # Set up at a loopback address, the service has taken this as the site's origin.
        self.origin = f"http://localhost:{self.port}"
        self.parts["valkey"] = store.pid
        if postgres:
            self.parts["postgres"] = postgres.pid
        if nginx:
            self.put_behind_nginx(stack, folder)

    def flask(self, *command: str, stdin: str = "", cores: Collection[int] | None = None) -> None:
        """Run a command of the service, pinned to `cores` if given."""
        self.python("-m", "flask", "--app", "wsgi", *command, stdin=stdin, cores=cores)

    def python(self, *arguments: str, stdin: str = "", cores: Collection[int] | None = None) -> str:
        """Run Python with the service's environment; return what it prints."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self._env,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=procs.on_cores(cores),
        )
        if done.returncode:
            output = done.stdout[-1500:] + done.stderr[-3000:]
            raise NotStarted(f"{' '.join(arguments)} failed:\n{output}")
        return done.stdout
