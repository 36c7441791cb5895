"""Runs a peer: two workers, on a database of its own, with the same accounts as the service.

The settings are those a careful operator would choose: gunicorn with two workers of eight threads,
or two Node processes; SQLite in WAL mode with synchronous=NORMAL, PostgreSQL with its default
durability; no rate limits and no mail; Argon2id at the service's cost.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from bench.accounts import ORDINARY, USERNAME_PREFIX
from bench.api import PASSWORD, email
from bench.peers import install
from bench.servers import (
    WORKERS,
    NotStarted,
    Postgres,
    Running,
    free_port,
    temporary_folder,
)

THREADS = 8


class Peer:
    """How to fill and serve one peer; commands may contain {installed} and {port}."""

    folder: ClassVar[str]
    program: ClassVar[str]
    fill: ClassVar[Sequence[str]]
    serve: ClassVar[Sequence[str]]
    health: ClassVar[str]
    environment: ClassVar[Mapping[str, str]] = {}

    def start(self, stack: ExitStack, postgres: Postgres | None, database: str) -> Running:
        """Fill a new database and serve it until `stack` is closed.

        Raises: install.Missing, NotStarted.
        """
        installed = install.ensure(self.folder)
        # Node resolves packages relative to the program.
        shutil.copyfile(install.SOURCES / self.folder / self.program, installed / self.program)
        folder, port = temporary_folder(stack), free_port()
        settings = {
            "PEER_FOLDER": str(folder),
            "PEER_PORT": str(port),
            "PEER_PASSWORD": PASSWORD,
            "PEER_EMAIL": email(f"{USERNAME_PREFIX}{{}}"),
            "PEER_ACCOUNTS": str(ORDINARY[-1]),
            "PEER_DATABASE": database if postgres else str(folder / "peer.db"),
            **self.environment,
        }
        if postgres:
            postgres.create(database)
            settings["PEER_POSTGRES_HOST"] = str(postgres.folder)
        fill, serve = (
            [part.format(installed=installed, port=port) for part in command]
            for command in (self.fill, self.serve)
        )
        _run(fill, installed, os.environ | settings)
        return Running(
            stack,
            serve,
            port,
            self.health,
            folder=folder,
            cwd=installed,
            env=settings,
            postgres=postgres,
        )


class PythonPeer(Peer):
    """A WSGI application under gunicorn."""

    program = "app.py"
    fill = ("{installed}/bin/python", "app.py", "fill")
    serve = (
        *("{installed}/bin/python", "-m", "gunicorn", "app", "--bind", "127.0.0.1:{port}"),
        *("--worker-class", "gthread", "--workers", str(WORKERS), "--threads", str(THREADS)),
        *("--log-level", "warning"),
    )


class Allauth(PythonPeer):
    """django-allauth headless with session tokens."""

    folder = "allauth"
    health = "/_allauth/app/v1/config"


class AllauthJwt(Allauth):
    """The same with JSON Web Tokens, the only kind it can refresh."""

    environment: ClassVar[Mapping[str, str]] = {"PEER_STRATEGY": "jwt"}


class FlaskSecurity(PythonPeer):
    """Flask-Security-Too with authentication tokens."""

    folder = "flask_security"
    health = "/me"


class BetterAuth(Peer):
    """better-auth on Node."""

    folder = "better_auth"
    program = "server.mjs"
    fill = ("node", "server.mjs", "fill")
    serve = ("node", "server.mjs")
    health = "/api/auth/ok"
    environment: ClassVar[Mapping[str, str]] = {"NODE_ENV": "production"}


def _run(command: list[str], folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotStarted(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


PEERS: Mapping[str, Peer] = {
    "allauth": Allauth(),
    "allauth_jwt": AllauthJwt(),
    "flask_security": FlaskSecurity(),
    "better_auth": BetterAuth(),
}
