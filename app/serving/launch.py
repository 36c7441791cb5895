"""The launcher behind bin/serve: starts Valkey and gunicorn, and stops them together.

It stays small and imports neither Flask nor SQLAlchemy, which would delay every start.
"""

import fcntl
import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from app.core.config import Config, ConfigError
from app.serving import valkey
from app.serving.health import Address
from app.serving.parent_death import before_exec

ROOT = Path(__file__).resolve().parents[2]
# The environment variable that makes gunicorn do what `flask prepare` does before it listens.
PREPARE_VARIABLE = "GATEHOUSE_PREPARES"
HEALTH_SECONDS = 60.0
HEALTH_POLL_SECONDS = 0.02
# gunicorn's graceful_timeout, what it writes to the database after it, and a margin.
GUNICORN_STOP_SECONDS = 13.0
VALKEY_STOP_SECONDS = 10.0
FORCED_STOP_SECONDS = 3.0
# A killed predecessor releases the address within this time, its children the instance folder.
ADDRESS_SECONDS = 3.0
CHILDREN_SECONDS = 20.0
DEATHS_ALLOWED = 5
WINDOW_SECONDS = 30.0
FIRST_BACKOFF_SECONDS = 0.25
STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

RUNNING = "Gatehouse is running at {url} (Ctrl-C stops it)\n"
PAGE = "Every call can be tried in a browser: {url}/api/v1/docs\n"
SIGN_IN_PAGE = "Sign in: {url}/\n"
FIRST_ADMIN_PAGE = "There is no administrator yet. Create one in a browser: {url}/setup\n"
FIRST_ADMIN_CALL = """\
There is no administrator yet. Create one:
  curl -s -X POST {url}/api/v1/auth/setup -H 'Content-Type: application/json' \\
    -d '{{"username": "ada", "email": "ada@example.com", "password": "<8 or more characters>"}}'
"""


class StartFailed(Exception):
    """The service did not start; the message says why."""


class Signals:
    """Counts SIGINT, SIGTERM and SIGHUP, notices SIGCHLD, and sleeps without polling."""

    def __init__(self) -> None:
        self.stops = 0
        signal.pthread_sigmask(signal.SIG_BLOCK, {*STOP_SIGNALS, signal.SIGCHLD})

    def wait(self, seconds: float | None) -> None:
        """Sleep until a signal arrives or `seconds` have passed; None sets no limit."""
        watched = {*STOP_SIGNALS, signal.SIGCHLD}
        if seconds is None:
            number = signal.sigwait(watched)
        else:
            received = signal.sigtimedwait(watched, max(0.0, seconds))
            number = received.si_signo if received else signal.SIGCHLD
        # systemd may send SIGHUP right after SIGTERM: that is not a second request to stop.
        if number == signal.SIGHUP:
            self.stops = max(self.stops, 1)
        elif number != signal.SIGCHLD:
            self.stops += 1

    def wait_until(self, done: Callable[[], bool], seconds: float, patience: int) -> bool:
        """Wait for `done`, checked at each signal; False on timeout or `patience` stops."""
        deadline = time.monotonic() + seconds
        while not (finished := done()) and self.stops < patience and time.monotonic() < deadline:
            self.wait(deadline - time.monotonic())
        return finished

    def sleep(self, seconds: float) -> None:
        """Sleep for `seconds`, or until a stop is requested."""
        self.wait_until(lambda: False, seconds, patience=1)


@dataclass
class Child:
    """A process and how to start it."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    stop_seconds: float
    process: subprocess.Popen[bytes] | None = None
    _deaths: list[float] = field(default_factory=list)

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process, and return it."""
        self.process = self.start()
        return self.process

    def is_dead(self) -> bool:
        """Return whether the process has exited, reaping it if so."""
        return self.process is not None and self.process.poll() is not None

    def record_death(self) -> float:
        """Return the backoff in seconds before the restart: none at first, then growing.

        Raises: StartFailed, at DEATHS_ALLOWED deaths within WINDOW_SECONDS.
        """
        now = time.monotonic()
        self._deaths = [death for death in self._deaths if now - death < WINDOW_SECONDS] + [now]
        recent = len(self._deaths)
        if recent >= DEATHS_ALLOWED:
            raise StartFailed(f"{self.name} died {recent} times within {WINDOW_SECONDS:g} s")
        return float(FIRST_BACKOFF_SECONDS * (2 ** (recent - 1) - 1))

    def stop(self, signals: Signals) -> None:
        """Stop the process gracefully, then with SIGINT, finally with SIGKILL."""
        if self.process is None or self.is_dead():
            return
        self.process.terminate()
        if signals.wait_until(self.is_dead, self.stop_seconds, patience=2):
            return
        # gunicorn and Valkey both take a SIGINT during a graceful stop as "stop now".
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(FORCED_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            # The whole process group: the workers must not outlive their master.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass
class Run:
    """One run of the service on an instance folder that this process has locked."""

    config: Config
    lock: int
    signals: Signals = field(default_factory=Signals)
    children: list[Child] = field(default_factory=list)
    is_prepared: bool = False

    def serve(self) -> None:
        """Start everything, keep it running until a signal arrives, then stop it.

        Raises: StartFailed, ValkeyUnavailable.
        """
        try:
            for step in (self._start_valkey, self._start_gunicorn):
                if not self.signals.stops:
                    step()
            while not self.signals.stops:
                self._restart_dead()
        finally:
            # In reverse order: each may need the ones started before it.
            for child in reversed(self.children):
                child.stop(self.signals)

    def _restart_dead(self) -> None:
        dead = [child for child in self.children if child.is_dead()]
        for child in dead:
            pause = child.record_death()
            complain(f"{child.name} died, starting it again")
            self.signals.sleep(pause)
            if not self.signals.stops:
                child.launch()
        if not dead:
            self.signals.wait(None)

    def _start_valkey(self) -> None:
        if not self.config.embedded_redis:
            return
        socket_path = Path(unquote(urlsplit(self.config.redis_url).path))
        folder = self.config.instance / "valkey"
        make_private(folder)
        make_private(socket_path.parent)
        start = partial(valkey.start, folder, socket_path, keep_open=(self.lock,))
        process = self._add("the embedded Valkey", start, VALKEY_STOP_SECONDS)
        valkey.wait_until_ready(process, socket_path, folder=folder)

    def _start_gunicorn(self) -> None:
        address = Address.of(self.config.bind)
        process = self._add("gunicorn", self._gunicorn, GUNICORN_STOP_SECONDS)
        deadline = reminder = time.monotonic() + HEALTH_SECONDS
        while not self.signals.stops and not (health := address.is_healthy()):
            now = time.monotonic()
            if process.poll() is not None:
                raise StartFailed(f"gunicorn exited with code {process.returncode}")
            if health is None:  # not listening yet: a migration may take any time
                deadline = now + HEALTH_SECONDS
                if now > reminder:
                    say("gunicorn is not listening yet; migrating a large database takes a while")
                    reminder = now + HEALTH_SECONDS
            if now > deadline:
                raise StartFailed(f"{address.url}/health did not answer in {HEALTH_SECONDS:g} s")
            self.signals.sleep(HEALTH_POLL_SECONDS)
        if not self.signals.stops:
            say(welcome(address))

    def _add(
        self, name: str, start: Callable[[], subprocess.Popen[bytes]], stop_seconds: float
    ) -> subprocess.Popen[bytes]:
        child = Child(name, start, stop_seconds)
        self.children.append(child)
        return child.launch()

    def _gunicorn(self) -> subprocess.Popen[bytes]:
        """Start gunicorn, tied to this process; only the first start prepares the database.

        A restart after a crash must succeed even while PostgreSQL is down.
        """
        environ = {**os.environ, "GATEHOUSE_INSTANCE": str(self.config.instance)}
        environ.pop(PREPARE_VARIABLE, None)
        if not self.is_prepared:
            environ[PREPARE_VARIABLE] = "1"
        self.is_prepared = True
        return subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--config", "gunicorn.conf.py", "wsgi:app"],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            pass_fds=(self.lock,),
            # Ctrl-C must reach this process only, which then stops the others in order.
            start_new_session=True,
            preexec_fn=before_exec(),
        )


def main(arguments: Sequence[str] = ()) -> int:
    """Run the service; return the exit code: 2 for a bad configuration, 1 for a failed start."""
    if arguments:
        complain(
            "takes no arguments; GATEHOUSE_* variables configure it, see docs/configuration.md"
        )
        return 2
    try:
        config = Config.from_env(os.environ)
    except ConfigError as error:
        complain(*str(error).splitlines())
        return 2
    complain(*config.unknown_variables)
    try:
        make_private(config.instance, "GATEHOUSE_INSTANCE: ")
        run_lock, children_lock = (config.instance / f"{who}.lock" for who in ("serve", "children"))
        another = f"another bin/serve is running on {config.instance}"
        # The children of a killed launcher inherit the second one and take a moment to finish; two
        # Valkeys on the same files would corrupt them.
        left = f"processes of an earlier run still use {config.instance}"
        with lock(run_lock, another), lock(children_lock, left, CHILDREN_SECONDS) as inherited:
            check_address(Address.of(config.bind))
            Run(config, inherited.fileno()).serve()
    except (StartFailed, valkey.ValkeyUnavailable) as error:
        complain(str(error))
        return 1
    except OSError as error:
        # A lock or log file that cannot be opened, for example because the disk is full.
        complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def make_private(folder: Path, origin: str = "") -> None:
    """Create `folder` for this user alone, or make an existing one of this user private.

    The parent may be /tmp, where anybody can create a folder or symlink of that name first.
    Raises: StartFailed, whose message begins with `origin`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if {folder.lstat().st_uid, folder.stat().st_uid} != {os.getuid()}:
            raise StartFailed(f"{origin}{folder} belongs to another user")
        folder.chmod(0o700)
    except FileExistsError:
        raise StartFailed(f"{origin}{folder} is not a folder") from None
    except OSError as error:
        raise StartFailed(f"{origin}{folder}: {error.strerror}") from error


def lock(file: Path, problem: str, seconds: float = 0.0) -> IO[bytes]:
    """Take the lock of a file; it is free once every process that has inherited it is gone.

    Raises: StartFailed with this problem, if it is not free within `seconds`.
    """
    opened = file.open("ab")
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                opened.close()
                raise StartFailed(problem) from None
            time.sleep(0.05)
        else:
            return opened


def check_address(address: Address) -> None:
    """Make sure, before anything is started, that the address is free.

    Raises: StartFailed, if it is not within ADDRESS_SECONDS.
    """
    deadline = time.monotonic() + ADDRESS_SECONDS
    while problem := address.bind_error():
        if time.monotonic() > deadline:
            raise StartFailed(f"GATEHOUSE_BIND: cannot listen on {address.url}: {problem}")
        time.sleep(0.1)


def welcome(address: Address) -> str:
    """Return the start message: the URLs and, on a new instance, the next step."""
    text = RUNNING.format(url=address.url)
    if not address.path:
        text += PAGE.format(url=address.page_url)
    try:
        _, answer = address.request("POST", "/api/v1/auth/check")
        is_new = answer["data"]["setup_state"] == "needs_admin"
        status, _ = address.request("GET", "/setup" if is_new else "/login")
    except (OSError, http.client.HTTPException, TypeError, KeyError):
        return text
    if status == HTTPStatus.OK and not address.path:
        next_step = FIRST_ADMIN_PAGE if is_new else SIGN_IN_PAGE
        return text + next_step.format(url=address.page_url)
    return text + FIRST_ADMIN_CALL.format(url=address.url) if is_new else text


def say(text: str) -> None:
    """Print to standard output and flush."""
    sys.stdout.write(text)
    sys.stdout.flush()


def complain(*lines: str) -> None:
    """Print lines to standard error."""
    sys.stderr.write("".join(f"bin/serve: {line}\n" for line in lines))
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
