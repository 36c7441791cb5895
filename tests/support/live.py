"""The real service: gunicorn with its workers, accessed over TCP."""

import atexit
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import parse_qsl

import psutil
from werkzeug.datastructures import Headers

from app.core.clock import Clock
from app.core.runtime import Runtime
from app.factory import create_app
from app.serving.parent_death import before_exec
from app.store.redis import EVENTS_CHANNEL, connect
from app.web import runtime as web_runtime
from tests.support import servers
from tests.support.api import BASE, Answer, Verbs, check_envelope, check_headers, is_enveloped
from tests.support.initial_state import InitialState
from tests.support.leaks import watch

TIMEOUT_SECONDS = 120.0


def eventually(condition: Callable[[], Any], what: str, seconds: float = TIMEOUT_SECONDS) -> Any:
    """Poll until `condition()` is true, and return its value; processes cannot notify us."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for: {what}"
        time.sleep(0.02)
    return value


def free_port() -> int:
    """Return a local port that is reserved for as long as this process lives.

    The kernel hands out no port that a socket is bound to, even if nothing listens there. A server
    that sets SO_REUSEADDR, as all do, can bind the port beside that socket.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    atexit.register(holder.close)  # this reference also keeps the socket alive until then
    return int(holder.getsockname()[1])


def dial(port: int, receive_buffer: int | None = None) -> socket.socket:
    """Return a connection to a local port."""
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(TIMEOUT_SECONDS)
    try:
        connection.connect(("127.0.0.1", port))
    except OSError:
        connection.close()
        raise
    return connection


class LiveService:
    """gunicorn on a migrated database; `rt` reaches the same database from the test."""

    gunicorn_config = "gunicorn.conf.py"
    # Running services; those that share a Redis must be counted together as its subscribers.
    _running: ClassVar[list["LiveService"]] = []

    def __init__(self, folder: Path, database_url: str, redis_url: str, **environment: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder / "gunicorn.log"
        self.redis_url = redis_url
        ours = {
            "INSTANCE": str(folder / "instance"),
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "BIND": f"127.0.0.1:{self.port}",
            "WORKERS": "2",
            "RATE_LIMITS": "off",
            "TRUSTED_PROXIES": "127.0.0.1",
            "RESPONSE_FLOOR_MS": "0",
            "ARGON2": "8/1/1",
            "SECRET_KEYS": servers.secret_keys(),
            "LOG_LEVEL": "WARNING",
        }
        environ = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")}
        environ |= {f"GATEHOUSE_{name}": value for name, value in (ours | environment).items()}
        self._environ = environ
        self._worker_count = int((ours | environment)["WORKERS"])
        app = create_app(
            servers.cheap_config(folder / "observer", database_url, redis_url),
            clock=Clock(),
        )
        servers.prepare_instance(app)
        (folder / "instance").mkdir(mode=0o700, exist_ok=True)
        self.rt: Runtime = app.extensions[web_runtime.EXTENSION]
        self._initial_state = InitialState(self.rt)
        self._process = self._launch()
        self._running.append(self)

    def _launch(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "--config", self.gunicorn_config, "wsgi:app"],
                cwd=servers.ROOT,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=before_exec(),
            )

    # --- processes ---------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process id of the gunicorn master."""
        return self._process.pid

    def workers(self) -> list[int]:
        """Return the process ids of the workers that are alive."""
        return [child.pid for child in psutil.Process(self.pid).children() if is_alive(child)]

    def worker_at(self, port: int) -> int:
        """Return the process id of the worker at the other end of a local port."""
        holder = self.workers_by_port().get(port)
        assert holder is not None, f"no worker holds a connection with port {port}"
        return holder

    def workers_by_port(self) -> dict[int, int]:
        """Return the workers' process ids by the remote port of each of their connections."""
        return {
            connection.raddr.port: pid
            for pid in self.workers()
            for connection in psutil.Process(pid).net_connections("tcp")
            if connection.raddr
        }

    def wait(self) -> None:
        """Return once the service answers with all its workers."""

        def is_up() -> bool:
            assert self._process.poll() is None, self.log.read_text()[-4000:]
            # Poll what costs a starting service next to nothing; list processes only after it.
            try:
                with self.client() as client:
                    answers = client.get("/health").status == 200
            except (OSError, http.client.HTTPException):
                return False
            return answers and len(self.workers()) >= self._worker_count

        eventually(is_up, f"the service; its log: {self.log}", servers.START_SECONDS)

    def wait_for_subscriptions(self) -> None:
        """Return once every worker has also subscribed to events; it serves before it has."""
        self.wait()
        workers = sum(
            service._worker_count
            for service in self._running
            if service.redis_url == self.redis_url and service._process.poll() is None
        )
        with connect(self.redis_url, timeout_seconds=TIMEOUT_SECONDS) as redis:
            eventually(
                lambda: redis.pubsub_numsub(EVENTS_CHANNEL)[0][1] >= workers, "their subscriptions"
            )

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill the whole service as a crash would, master and workers at once."""
        os.killpg(self.pid, number)
        self._process.wait()

    def wait_for_end(self) -> None:
        """Return once a service that was told to stop has done so."""
        self._process.wait(TIMEOUT_SECONDS)

    def restart(self) -> None:
        """Start it again after it has ended."""
        self._process = self._launch()
        self.wait()

    def stop(self) -> None:
        self._running.remove(self)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self.rt.close()

    def reset(self) -> None:
        """Remove every account, session, setting and counter; the processes stay."""
        self.wait_for_subscriptions()
        self._initial_state.restore()

    # --- clients -----------------------------------------------------------------------------

    def dial(self, receive_buffer: int | None = None) -> socket.socket:
        """Return a new connection, optionally with a receive buffer of this many bytes."""
        return dial(self.port, receive_buffer)

    def client(self) -> "LiveClient":
        """Return a client with one connection, kept open; close it or use it as a context."""
        return LiveClient(self)

    @contextmanager
    def clients(self, number: int) -> Iterator[list["LiveClient"]]:
        """Yield connected clients, at least a quarter of them on each worker."""
        clients = [self.client() for _ in range(number)]

        def are_shared() -> bool:
            """Return whether that is so; if not, reconnect a client of the busiest worker."""
            holders = self.workers_by_port()
            held = Counter(holders[client.port] for client in clients)
            if len(held) == self._worker_count and min(held.values()) >= number // 4:
                return True
            busiest = max(held, key=held.__getitem__)
            moved = next(client for client in clients if holders[client.port] == busiest)
            moved.close()
            moved.get("/health")
            return False

        try:
            for client in clients:
                client.get("/health")
            eventually(are_shared, "connections of every worker")
            yield clients
        finally:
            for client in clients:
                client.close()

    @contextmanager
    def client_on_each_worker(self) -> Iterator[list["LiveClient"]]:
        """Yield one connected client per worker."""
        found: dict[int, LiveClient] = {}
        spare: list[LiveClient] = []
        try:
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while len(found) < self._worker_count:
                assert time.monotonic() < deadline, "a worker takes no connections"
                client = self.client()
                client.get("/health")
                kept = found.setdefault(client.worker(), client)
                if kept is not client:
                    spare.append(client)
            yield list(found.values())
        finally:
            for client in [*found.values(), *spare]:
                client.close()


def is_alive(process: psutil.Process) -> bool:
    """Return whether `process` still runs; it may end at any moment, even during the check."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Front(Protocol):
    """What accepts connections: a service, or a proxy in front of several."""

    port: int

    def dial(self, receive_buffer: int | None = None) -> socket.socket:
        """Return a new connection, optionally with a receive buffer of this many bytes."""


class Connection(http.client.HTTPConnection):
    """A connection dialled by its front, perhaps with TLS."""

    def __init__(self, front: Front) -> None:
        super().__init__("127.0.0.1", front.port)
        self._front = front

    def connect(self) -> None:
        self.sock = self._front.dial()


def raw(front: Front, request: bytes) -> Answer:
    """Send raw bytes, which need not be a valid request; check the answer and return it."""
    with front.dial() as connection:
        connection.sendall(request)
        response = http.client.HTTPResponse(connection)
        response.begin()
        headers = Headers(response.getheaders())
        answer = Answer("any", "bytes", response.status, headers, response.read())
    check_headers(answer, f"{BASE}/")
    check_envelope(answer)
    return answer


class LiveClient(Verbs):
    """One connection and a cookie jar; acts like a script unless told otherwise."""

    def __init__(self, service: Any) -> None:
        self.service = service
        self.cookies: dict[str, str] = {}
        self._connection = Connection(service)

    def __enter__(self) -> "LiveClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Open the connection ahead of the first request."""
        self._connection.connect()

    def close(self) -> None:
        self._connection.close()

    @property
    def socket(self) -> socket.socket:
        """The open connection."""
        return self._connection.sock

    @property
    def port(self) -> int:
        """The local port of the connection."""
        return int(self.socket.getsockname()[1])

    def worker(self) -> int:
        """Return the process id of the worker at the other end of the connection."""
        worker: int = self.service.worker_at(self.port)
        return worker

    def login(self, user: Any) -> Answer:
        body = {"identifier": user.username, "password": user.password}
        return self.post("/auth/login", body)

    def refresh(self, **options: Any) -> Answer:
        return self.post("/auth/refresh", **options)

    def me(self) -> Answer:
        return self.get("/auth/me")

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """Send a request and return its answer; its cookies go to the jar."""
        return self.send(method, path, body, **options)()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Callable[[], Answer]:
        """Send a request; return a function that waits for its answer.

        `body` is sent as JSON; bytes as they are; an iterator of bytes in chunks.
        """
        full = path if path.startswith(("/api/", "/health")) else BASE + path
        watch.note_body(body)
        watch.note_members(dict(parse_qsl(full.partition("?")[2])))
        data, sent = None, dict(headers or {})
        if body is not None:
            is_raw = isinstance(body, bytes) or hasattr(body, "__next__")
            data = body if is_raw else json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        if self.cookies:
            cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            sent.setdefault("Cookie", cookie)
        chunked = hasattr(data, "__next__")
        self._connection.request(method, full, data, sent, encode_chunked=chunked)
        return lambda: self._receive(method, full)

    def _receive(self, method: str, full: str) -> Answer:
        response = self._connection.getresponse()
        answer = Answer(
            method, full, response.status, Headers(response.getheaders()), response.read()
        )
        watch.note_answer(answer.body, (cookie.value for cookie in answer.set_cookies.values()))
        bare = full.partition("?")[0]
        check_headers(answer, bare)
        if is_enveloped(bare, answer):
            check_envelope(answer)
        self._remember(answer)
        return answer

    def _remember(self, answer: Answer) -> None:
        for name, cookie in answer.set_cookies.items():
            if cookie.value:
                self.cookies[name] = cookie.value
            else:
                self.cookies.pop(name, None)
