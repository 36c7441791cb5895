"""The launcher behind bin/serve: starts Valkey and gunicorn, and stops them together.

It stays small and imports neither Flask nor SQLAlchemy, which would delay every start.
"""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.core.config import Config
from app.core.environment import ConfigError
from app.serving import instance, valkey
from app.serving.address import Address
from app.serving.parent_death import before_exec
from app.serving.supervisor import Child, GaveUp, Signals, keep_alive, stop_all

ROOT = Path(__file__).resolve().parents[2]
# The environment variable that makes gunicorn do what `flask prepare` does before it listens.
PREPARE_VARIABLE = "GATEHOUSE_PREPARES"
HEALTH_SECONDS = 60.0
HEALTH_POLL_SECONDS = 0.02
# gunicorn's graceful_timeout plus a margin.
GUNICORN_STOP_SECONDS = 13.0
VALKEY_STOP_SECONDS = 10.0
# A killed predecessor releases the address within this time.
ADDRESS_SECONDS = 3.0
START_ERRORS = (instance.InstanceError, valkey.ValkeyUnavailable, GaveUp)

RUNNING = "Gatehouse is running at {url} (Ctrl-C stops it)\n"
PAGE = "Every call can be tried in a browser: {url}/api/v1/docs\n"
FIRST_ADMIN = """\
There is no administrator yet. Create one on the page /api/v1/docs (POST /auth/setup), or:
  curl -X POST {url}/api/v1/auth/setup -H 'Content-Type: application/json' \\
    -d '{{"username": "admin", "email": "admin@example.com", "password": "<8 or more characters>"}}'
"""


class StartFailed(Exception):
    """The service did not start; the message says why."""


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

        Raises: StartFailed, GaveUp, ValkeyUnavailable.
        """
        try:
            for step in (self._start_valkey, self._start_gunicorn):
                if not self.signals.stops:
                    step()
            keep_alive(self.children, self.signals, complain)
        finally:
            stop_all(self.children, self.signals)

    def _start_valkey(self) -> None:
        if not self.config.embedded_redis:
            return
        socket_path = Path(unquote(urlsplit(self.config.redis_url).path))
        folder = self.config.instance / "valkey"
        instance.make_private(folder)
        instance.make_private(socket_path.parent)
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
                    say("gunicorn does not listen yet; a large database is migrated for a while")
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
        complain("takes no arguments; it is configured by GATEHOUSE_* variables, see README.md")
        return 2
    try:
        config = Config.from_env(os.environ)
    except ConfigError as error:
        complain(*str(error).splitlines())
        return 2
    complain(*config.unknown_variables)
    try:
        take_instance(config.instance)
        with (
            instance.lock_run(config.instance),
            instance.lock_children(config.instance) as lock,
        ):
            check_address(Address.of(config.bind))
            Run(config, lock.fileno()).serve()
    except (*START_ERRORS, StartFailed) as error:
        complain(str(error))
        return 1
    except OSError as error:
        # A lock or log file that cannot be opened, for example because the disk is full.
        complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def take_instance(folder: Path) -> None:
    """Make the instance folder private to this user, creating it if need be.

    Raises: StartFailed, naming the variable that it comes from.
    """
    try:
        instance.make_private(folder)
    except instance.InstanceError as error:
        raise StartFailed(f"GATEHOUSE_INSTANCE: {error}") from error


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
        state = answer["data"]["setup_state"]
    except (OSError, http.client.HTTPException, TypeError, KeyError):
        return text
    return text + FIRST_ADMIN.format(url=address.url) if state == "needs_admin" else text


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
