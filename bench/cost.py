"""What one request costs: `python -m bench.cost --help`.

The requests run in this process, one after another, as a worker runs them: with gevent, without
gunicorn. The CPU time is measured first. The shares come from cProfile, which makes small functions
look dearer than they are.
"""

# ruff: noqa: E402 - the standard library must be patched before anything imports from it
from gevent import monkey

monkey.patch_all()

from app.store import postgres

postgres.wait_cooperatively()

import argparse
import cProfile
import gc
import json
import os
import pstats
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, redirect_stderr
from http.cookies import SimpleCookie
from io import BytesIO
from pathlib import Path
from typing import Any

from flask import Flask
from werkzeug.test import EnvironBuilder

from app.core.config import Config
from app.factory import create_app
from bench import accounts
from bench.accounts import username
from bench.api import LOGIN, Unexpected, cookie_header, credentials
from bench.peers.jobs import SESSIONS_LISTED
from bench.scenarios.growth import WITHOUT_HASH
from bench.scenarios.requests import ME, REFRESH, SESSIONS
from bench.servers import ROOT, Postgres, Service

DATABASES = ("sqlite", "postgres")
ROUNDS = 5
SHARES_SHOWN = 12
STATEMENTS_SHOWN = 8
CREATE_STATISTICS = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"
RESET_STATISTICS = "SELECT pg_stat_statements_reset()"
READ_STATISTICS = (
    "SELECT calls, total_plan_time, total_exec_time, query FROM pg_stat_statements"
    " WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND query <> %s AND calls > 0 ORDER BY total_plan_time + total_exec_time DESC"
)
# Drivers in C: cProfile names their functions, but no file.
DRIVERS = ("psycopg2", "sqlite3")

Send = Callable[[], None]


class Caller:
    """A signed-in account that sends one kind of request again and again."""

    def __init__(self, app: Flask, service: Service, number: int) -> None:
        self._app = app
        self._user = username(number)
        self._cookies = service.api.login(self._user)
        self._environs: dict[str, dict[str, Any]] = {}

    def me(self) -> None:
        self._send("GET", ME, cookie_header(self._cookies))

    def sessions(self) -> None:
        self._send("GET", SESSIONS, cookie_header(self._cookies))

    def refresh(self) -> None:
        cookies = self._send("POST", REFRESH, cookie_header(self._cookies))
        self._cookies |= {name: morsel.value for name, morsel in SimpleCookie(cookies).items()}

    def login(self) -> None:
        self._send("POST", LOGIN, body=json.dumps(credentials(self._user)).encode())

    def _send(self, method: str, path: str, cookies: str = "", body: bytes = b"") -> str:
        """Send a request; return the cookies that its answer sets."""
        if path not in self._environs:
            kind = "application/json" if body else None
            builder = EnvironBuilder(path, method=method, data=body, content_type=kind)
            self._environs[path] = builder.get_environ()
        fresh = {"HTTP_COOKIE": cookies, "wsgi.input": BytesIO(body)}
        environ = self._environs[path] | fresh
        given: list[Any] = []
        answer = b"".join(self._app(environ, lambda *start: given.extend(start)))  # type: ignore[arg-type]
        status, headers, *_ = given
        if status != "200 OK":
            raise Unexpected(f"{method} {path}: {status} {answer.decode()}")
        return "; ".join(value for name, value in headers if name == "Set-Cookie")


def main() -> None:
    """Print, for each kind of request, its CPU time and who spends it."""
    parser = argparse.ArgumentParser(prog="python -m bench.cost", description=__doc__)
    parser.add_argument("--database", choices=DATABASES, default="sqlite")
    parser.add_argument("--requests", type=int, default=500, help=f"of each of {ROUNDS} rounds")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        server = _database(stack) if arguments.database == "postgres" else None
        # It prepares the accounts and their sessions; what is measured runs in this process.
        service = Service(stack, server, "cost", **WITHOUT_HASH)
        accounts.fill(service, accounts.ORDINARY)
        nowhere = stack.enter_context(open(os.devnull, "w"))
        with redirect_stderr(nowhere):  # of the access log
            app = create_app(Config.from_env(service.settings))
        stack.callback(app.extensions["gatehouse"].close)
        for _ in range(SESSIONS_LISTED - 1):
            service.api.login(username(2))
        requests: dict[str, Send] = {
            "who am I": Caller(app, service, 1).me,
            f"session list, of {SESSIONS_LISTED}": Caller(app, service, 2).sessions,
            "refresh": Caller(app, service, 3).refresh,
            "login without its hash": Caller(app, service, 4).login,
        }
        for name, send in requests.items():
            print(f"\n{name}, {arguments.database}: {_cpu_ms(send, arguments.requests):.3f} ms")
            _show_shares(send, arguments.requests)
            if server:
                _show_statements(server, send, arguments.requests)


def _database(stack: ExitStack) -> Postgres:
    parameters = {
        "shared_preload_libraries": "pg_stat_statements",
        "pg_stat_statements.track_planning": "on",
    }
    return Postgres(stack, **parameters)


def _cpu_ms(send: Send, count: int) -> float:
    """Return the CPU time of this process for one request, the median of the rounds."""
    _repeat(send, count)  # everything has been imported, compiled and cached from then on
    rounds = []
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        _repeat(send, count)
        rounds.append(1000 * (time.process_time() - began) / count)
    return statistics.median(rounds)


def _repeat(send: Send, count: int) -> None:
    for _ in range(count):
        send()


def _show_shares(send: Send, count: int) -> None:
    profile = cProfile.Profile(time.process_time)
    profile.runcall(_repeat, send, count)
    spent: defaultdict[str, float] = defaultdict(float)
    for library, own in _own_times(pstats.Stats(profile).stats):  # type: ignore[attr-defined]
        spent[library] += own
    whole = sum(spent.values())
    dearest_first = sorted(spent.items(), key=lambda item: -item[1])
    for library, seconds in dearest_first[:SHARES_SHOWN]:
        print(f"  {seconds / whole:6.1%}  {library}")


def _own_times(stats: Mapping[Any, Any]) -> Iterator[tuple[str, float]]:
    """Yield the time spent in each function itself; a built-in one's belongs to who calls it."""
    for (file, _, name), (_, _, own, _, callers) in stats.items():
        if file != "~":
            yield _library(file), own
        elif driver := next((driver for driver in DRIVERS if driver in name), None):
            yield driver, own
        else:
            for (caller, *_), (_, _, part, _) in callers.items():
                yield _library(caller), part


def _library(file: str) -> str:
    """Return the package that a file belongs to."""
    parts = Path(file).parts
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1].removesuffix(".py")
    return "app" if file.startswith(str(ROOT / "app")) else "Python itself"


def _show_statements(server: Postgres, send: Send, count: int) -> None:
    """Show what PostgreSQL itself spends for each statement of a request."""
    connection = server.connect("cost")
    cursor = connection.cursor()
    cursor.execute(CREATE_STATISTICS)
    cursor.execute(RESET_STATISTICS)
    _repeat(send, count)
    cursor.execute(READ_STATISTICS, (RESET_STATISTICS,))
    for calls, planned, executed, query in cursor.fetchmany(STATEMENTS_SHOWN):
        text = " ".join(query.split())[:90]
        print(
            f"  {calls / count:4.2g} x  plan {planned / calls:.3f} ms, run "
            f"{executed / calls:.3f} ms  {text}"
        )
    connection.close()


if __name__ == "__main__":
    main()
