"""Runs the real launcher on a private instance folder, a free port and its own Valkey."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psutil
from flask import Flask

from app.core.config import Config, default_redis_url
from app.core.runtime import Runtime
from app.factory import create_app
from app.web.runtime import EXTENSION
from tests.support import live
from tests.support.leaks import watch
from tests.support.live import free_port
from tests.support.servers import ROOT, cheap_config

TIMEOUT_SECONDS = 180.0


def eventually(condition: Callable[[], Any], what: str, seconds: float = TIMEOUT_SECONDS) -> Any:
    """Wait for `condition` as long as a first start may take on a busy machine; return it."""
    return live.eventually(condition, what, seconds)


def is_gone(process: psutil.Process) -> bool:
    """Return whether a process has ended; a zombie counts as ended."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Service:
    """One instance folder and the launcher that serves it."""

    def __init__(self, instance: Path) -> None:
        self.instance = instance
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.valkey_socket = Path(default_redis_url(instance).removeprefix("unix://"))
        self._beside = instance
        self._written: list[Path] = []
        self._launchers: list[subprocess.Popen[bytes]] = []
        self._command_line: Flask | None = None

    def launch(self, **settings: str) -> subprocess.Popen[bytes]:
        """Run the launcher without waiting; keyword X sets GATEHOUSE_X."""
        ours = {"BIND": f"127.0.0.1:{self.port}", "WORKERS": "2"}
        environ = self._environ(ours | settings)
        # Files of its own: an earlier launcher may still be writing to its own.
        name = self._beside.with_name(f"{self._beside.name}{len(self._launchers)}")
        self.output, self.errors = name.with_suffix(".out"), name.with_suffix(".err")
        self._written += [self.output, self.errors]
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            launcher = subprocess.Popen(
                [sys.executable, "-m", "app.serving.launch"],
                cwd=ROOT,
                env=environ,
                stdout=output,
                stderr=errors,
            )
        self._launchers.append(launcher)
        return launcher

    def _environ(self, settings: dict[str, str]) -> dict[str, str]:
        foreign = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")}
        ours = {"INSTANCE": str(self.instance)} | settings
        return foreign | {f"GATEHOUSE_{name}": value for name, value in ours.items()}

    def flask(self, *arguments: str) -> str:
        """Run a `flask` command on the service's stores; return its standard output.

        In this process, which takes a tenth of the time.
        """
        result = self._application().test_cli_runner().invoke(args=list(arguments))
        assert result.exit_code == 0, result.output
        return result.stdout

    @property
    def runtime(self) -> Runtime:
        """The runtime of those commands, which has the service's own keys."""
        runtime: Runtime = self._application().extensions[EXTENSION]
        return runtime

    def _application(self) -> Flask:
        if self._command_line is None:
            self._command_line = create_app(Config.from_env(self._environ({})))
        return self._command_line

    def observer(self, folder: Path) -> Runtime:
        """Return a runtime on the service's stores and keys, with `folder` for its own files."""
        folder.mkdir()
        shutil.copy(self.instance / "keys.json", folder)
        database_url = f"sqlite:///{self.instance / 'gatehouse.db'}"
        redis_url = default_redis_url(self.instance)
        config = cheap_config(folder, database_url, redis_url, secret_keys=())
        runtime: Runtime = create_app(config).extensions[EXTENSION]
        return runtime

    def start(self, **settings: str) -> subprocess.Popen[bytes]:
        """Run the launcher; return it once it has announced the service and all workers run."""
        launcher = self.launch(**settings)
        eventually(
            lambda: "is running at" in self.output.read_text() or launcher.poll() is not None,
            "the launcher's announcement",
        )
        assert launcher.poll() is None, self.errors.read_text()
        eventually(lambda: len(self.workers) == int(settings.get("WORKERS", 2)), "all workers")
        return launcher

    @property
    def launcher(self) -> subprocess.Popen[bytes]:
        return self._launchers[-1]

    def _child(self, wanted: Callable[[psutil.Process], bool]) -> psutil.Process | None:
        children = psutil.Process(self.launcher.pid).children()
        return next((child for child in children if not is_gone(child) and wanted(child)), None)

    @property
    def valkey(self) -> psutil.Process | None:
        return self._child(lambda child: "valkey" in child.name())

    @property
    def gunicorn(self) -> psutil.Process | None:
        return self._child(lambda child: "valkey" not in child.name())

    @property
    def workers(self) -> list[psutil.Process]:
        master = self.gunicorn
        return [] if master is None else [w for w in master.children() if not is_gone(w)]

    def processes(self) -> list[psutil.Process]:
        """Return every process of the run, including the launcher."""
        launcher = psutil.Process(self.launcher.pid)
        return [launcher, *launcher.children(recursive=True)]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal the launcher; return its exit code."""
        self.launcher.send_signal(number)
        return self.launcher.wait(TIMEOUT_SECONDS)

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=30) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def post(self, path: str, **body: object) -> dict[str, Any]:
        """Send JSON; return the envelope's data."""
        watch.note_body(body)
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return cast("dict[str, Any]", json.load(answer)["data"])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_SECONDS)

    def close(self) -> None:
        """Kill every launcher, and assert that their output contains no secret."""
        if self._command_line:
            self._command_line.extensions[EXTENSION].close()
        for launcher in self._launchers:
            launcher.kill()
            launcher.wait()
        leaks = watch.leaks_of(*self._written)
        assert not leaks, "\n".join(leaks)  # no test module: pytest would not show them
