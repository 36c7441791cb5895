"""The command line: within the test's application, on an instance of its own, and as a process."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from app.avatars import render_process
from app.commands import run
from app.core import logs
from app.core.config import Config
from app.factory import create_app
from app.web import runtime as web_runtime
from tests.support import servers
from tests.support.commands import CommandLine


@pytest.fixture(autouse=True)
def _quick_pictures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have `flask doctor` draw its picture without starting a process."""
    with pytest.MonkeyPatch.context() as patch:
        if "unhurried" not in request.fixturenames:
            drawn = b'begun\n{"written": 1}'
            patch.setattr(render_process, "_output", lambda *_: drawn)
        yield


@pytest.fixture
def unhurried() -> None:
    """Examine all as it is in a deployment."""


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """The folder of an instance that does not exist yet."""
    return tmp_path / "instance"


@pytest.fixture
def application(instance: Path) -> Callable[..., Any]:
    """Make the application as wsgi.py does, of that folder and these variables, for a while.

    Raises: ConfigError.
    """

    @contextmanager
    def make(**variables: str) -> Iterator[Flask]:
        quiet = {"GATEHOUSE_ARGON2": "8/1/1", "GATEHOUSE_LOG_LEVEL": "CRITICAL"}
        ours = {"GATEHOUSE_INSTANCE": str(instance)} | quiet | variables
        app = create_app(Config.from_env(ours))
        try:
            yield app
        finally:
            web_runtime.of(app).close()
            logs.configure("text", "CRITICAL")

    return make


@pytest.fixture
def flask(application: Callable[..., Any]) -> Callable[..., Any]:
    """Run `flask ...` in this process, on that folder and these variables."""

    def invoke(*arguments: str, stdin: str | None = None, **variables: str) -> Any:
        with application(**variables) as app:
            return CommandLine(app)(*arguments, stdin=stdin)

    return invoke


@pytest.fixture
def prepared(
    application: Callable[..., Any], instance: Path, sqlite_template: Path
) -> Callable[..., Any]:
    """That folder as `flask prepare` leaves it; return `application`."""
    with application() as app:
        servers.prepare_instance(app)
    servers.copy_sqlite(sqlite_template, instance / "gatehouse.db")
    return application


@pytest.fixture
def environment(instance: Path) -> dict[str, str]:
    """What a process of its own gets."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")}
    return kept | {"GATEHOUSE_INSTANCE": str(instance), "GATEHOUSE_ARGON2": "8/1/1"}


@pytest.fixture
def flask_process(environment: dict[str, str]) -> Callable[..., Any]:
    """Run `flask ...` in a process of its own, which takes two seconds."""

    def start(*arguments: str, stdin: str = "", **options: Any) -> Any:
        streams = {"input": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        command = [sys.executable, "-m", "flask", "--app", "wsgi", *arguments]
        return subprocess.run(command, cwd=servers.ROOT, env=environment, text=True, **streams)

    return start


@pytest.fixture
def run_with(prepared: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run a command with other standard streams; return its exit code."""

    def invoke(*arguments: str, **streams: Any) -> int:
        with prepared() as app, monkeypatch.context() as patch:
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            return run(app, *arguments)

    return invoke
