"""Schemathesis over the API description: every operation, as every kind of caller.

The suite runs a short form (test_fuzz.py). The long one, of more than 20,000 requests, by hand:

    .venv/bin/python -m tests.security.fuzz

What it finds is a fault of the service or of its description. All checks of Schemathesis are on;
`is_a_fault` tells the complaints that are none here, and why.
"""

import argparse
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from flask import Flask
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure
from schemathesis.engine import Status, events, from_schema
from schemathesis.specs.openapi.checks import (
    AcceptedNegativeData,
    AllowHeaderMismatch,
    RejectedPositiveData,
    UnsupportedMethodResponse,
    UseAfterFree,
)
from schemathesis.transport.wsgi import WSGI_TRANSPORT, WSGITransport

from app.core.client import Client
from app.core.clock import Clock
from app.core.config import FailureLimit
from app.core.runtime import Runtime
from app.crypto.tokens import random_token
from app.factory import create_app
from app.sessions import service as sessions
from app.web import runtime as web_runtime
from tests.support import servers
from tests.support.api import ORIGIN
from tests.support.factories import KnownUser, change_user, configure, make_user
from tests.support.smtp import HOST, RecordingSmtpServer

OPENAPI = "/api/v1/openapi.json"
PRINCIPALS = ("anonymous", "page", "script", "limited", "admin")
PHASES = ("examples", "coverage", "fuzzing", "stateful")
# How a refusal begins that means the form of a request, not what it asks for.
MALFORMED = ("invalid JSON request body", "invalid query")
# Below these, a word is an address of its own and might be an id or a key: `/admin/users/bulk`.
SHARED_PATHS = (
    "/api/v1/admin/users/",
    "/api/v1/auth/passkeys/",
    "/api/v1/admin/config/",
    "/api/v1/admin/external-auth/providers/",
)
FRACTION = re.compile(r"-?[0-9]+\.0")
# Rules about two members, which no field of a schema can show; and of a bare export of settings,
# whose members are values.
UNDESCRIBED = (
    "values.",
    "exactly one of",
    "must be 0 or more than min_file_size",
    "must have each priority once",
    "must not name what is in values",
    "is needed for this method",
)
# What would stop just such a caller, or slow it down.
UNLIMITED: dict[str, Any] = {
    "rate_limits": False,
    "failure_limit": FailureLimit(attempts=1_000_000),
    "response_floor_ms": 0,
}


@dataclass
class Summary:
    """What a run did and what it found: the text of the first failure of each kind, by kind.

    `answered` has the statuses that each operation answered.
    """

    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    phases: set[str] = field(default_factory=set)
    answered: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    checks: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, other: "Summary") -> None:
        """Count another run in."""
        self.cases += other.cases
        self.statuses += other.statuses
        self.phases |= other.phases
        for operation, statuses in other.answered.items():
            self.answered[operation] |= statuses
        self.checks |= other.checks
        self.failures |= other.failures

    def __str__(self) -> str:
        statuses = ", ".join(
            f"{count} x {status}" for status, count in sorted(self.statuses.items())
        )
        head = (
            f"{self.cases} cases on {len(self.answered)} operations ({statuses}), "
            f"{len(self.failures)} failures"
        )
        return "\n\n".join([head, *self.failures.values()])


# --- callers -----------------------------------------------------------------------------------


class Caller:
    """Signs in anew for every request: many end their own session, and `/auth/lock` all of them.

    Schemathesis calls `get` and `set` of an object that it makes itself.
    """

    rt: Runtime
    user: KnownUser
    is_limited = False
    is_page = False

    def get(self, case: Any, context: Any) -> Any:
        """Open a session, of an account that may do what this caller may."""
        change_user(self.rt, self.user, must_change_password=self.is_limited)
        with self.rt.transaction() as session:
            return sessions.open_session(
                self.rt, session, self.user.id, Client(), is_limited=self.is_limited
            )

    def set(self, case: Any, pair: Any, context: Any) -> None:
        """Send its tokens the way this caller does."""
        if not self.is_page:
            case.headers["Authorization"] = f"Bearer {pair.access_token}"
            return
        csrf = random_token()
        case.cookies["service_access"] = pair.access_token
        case.cookies["service_refresh"] = pair.refresh_token
        case.cookies["service_csrf"] = csrf
        case.headers["X-CSRF-Token"] = csrf
        case.headers["Origin"] = ORIGIN
        case.headers["Sec-Fetch-Site"] = "same-origin"


def caller(rt: Runtime, principal: str) -> type[Caller]:
    """Make an account and return the kind of caller that signs in to it."""
    columns: dict[str, Any] = {
        "page": {},
        "script": {},
        "limited": {"must_change_password": True},
        "admin": {"role": "admin"},
    }[principal]
    about = {
        "rt": rt,
        "user": make_user(rt, **columns),
        "is_limited": principal == "limited",
        "is_page": principal in {"page", "limited"},
    }
    return type(principal, (Caller,), about)


# --- a run -------------------------------------------------------------------------------------


class Transport(WSGITransport):
    """Calls the application in this process.

    The probes of the check `ignored_auth` bring settings of a network along, which Werkzeug's
    client does not know.
    """

    def send(self, case: Any, **settings: Any) -> Any:
        """Send a request without them."""
        for name in ("max_redirects", "verify", "cert", "proxies"):
            settings.pop(name, None)
        return super().send(case, **settings)


def is_a_fault(context: Any, failure: Failure, case: Any, response: Any) -> bool:
    """Tell whether what Schemathesis complains about is one.

    It takes any 400 to a request that fits its schema for one, since it expects 409 or 422 where a
    request is understood and yet refused. The interface has 400 for most of these, say for a name
    that is taken. It stays a fault when a request is refused for its form, which the schema shows.

    It wonders at what `Allow` names, and at methods that are answered, at an address that is also
    an id or a key of another path. It does not know that a blank filter is none, as
    `allowEmptyValue` says, nor that `2.0` is a whole number in JSON only, nor that a deleted team
    is in the archive.
    """
    query = (case.query or {}).values()
    if isinstance(failure, AcceptedNegativeData):
        return "" not in query
    if isinstance(failure, UseAfterFree):
        return not case.path.startswith("/api/v1/admin/teams/")
    if isinstance(failure, (AllowHeaderMismatch, UnsupportedMethodResponse)):
        return not case.path.startswith(SHARED_PATHS)
    if not isinstance(failure, RejectedPositiveData):
        return True
    msg = response.json()["msg"]
    if msg.startswith("invalid query") and any(FRACTION.fullmatch(str(value)) for value in query):
        return False
    return msg.startswith(MALFORMED) and not any(rule in msg for rule in UNDESCRIBED)


def run(
    app: Flask,
    principal: str,
    *,
    examples: int,
    seed: int = 1,
    phases: tuple[str, ...] = PHASES,
) -> Summary:
    """Call every operation as `principal`.

    `examples` is how many requests fuzzing makes up for each operation, and how many chains of
    requests there are. With one seed, every run is the same.
    """
    WSGI_TRANSPORT.__class__ = Transport
    schema = schemathesis.openapi.from_wsgi(OPENAPI, app, config=SchemathesisConfig(seed=seed))
    schema.config.generation.update(max_examples=examples, database="none")
    # Made-up cookies would take the place of a caller's token.
    schema.config.generation.with_security_parameters = principal == "anonymous"
    schema.config.continue_on_failure = True
    schema.config.phases.update(phases=list(phases))
    schema.hook("filter_failure")(is_a_fault)
    if principal != "anonymous":
        rt: Runtime = app.extensions[web_runtime.EXTENSION]
        schema.auth(refresh_interval=None)(caller(rt, principal))
    summary = Summary()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _note(summary, event, principal)
        elif isinstance(event, events.NonFatalError):
            kind = f"{event.label}: {event.value!r}"
            summary.failures[kind] = f"{kind} ({principal})"
        elif isinstance(event, events.FatalError):
            raise event.exception
    return summary


def _note(summary: Summary, event: events.ScenarioFinished, principal: str) -> None:
    recorder = event.recorder
    if recorder.interactions:
        summary.phases.add(event.phase.value)
    for case_id, interaction in recorder.interactions.items():
        summary.cases += 1
        answered = summary.answered[recorder.cases[case_id].value.operation.label]
        if interaction.response is not None:
            summary.statuses[interaction.response.status_code] += 1
            answered.add(interaction.response.status_code)
    for case_id, checks in recorder.checks.items():
        for check in checks:
            summary.checks.add(check.name)
            if check.status is Status.FAILURE:
                kind, text = _told(recorder, case_id, check)
                summary.failures.setdefault(kind, f"{kind} ({principal})\n{text}")


def _told(recorder: Any, case_id: str, check: Any) -> tuple[str, str]:
    """Return the kind of a failure, and all that is needed to see it again."""
    case, response = recorder.cases[case_id].value, recorder.interactions[case_id].response
    told = check.failure_info
    kind = f"{case.operation.label}: {check.name}: {told.failure.title}"
    answer = "" if response is None else f"-> {response.status_code} {response.content[:500]!r}"
    return kind, f"{told.failure.message}\n{told.code_sample}\n{answer}"


# --- the long form -----------------------------------------------------------------------------


def prepare(rt: Runtime, smtp_port: int) -> None:
    """Set up what otherwise refuses everything else: an administrator, an address, mail."""
    make_user(rt, username="root", role="admin")
    configure(
        rt,
        public_site_url=[ORIGIN],
        mail_smtp_host=HOST,
        mail_smtp_port=smtp_port,
        mail_security=False,
        mail_from_address="files@files.example",
        auth_email_code_login_enabled=True,
        auth_email_code_sign_in_enabled=True,
    )


@contextmanager
def private_service() -> Iterator[Flask]:
    """Yield an application on SQLite, with a Valkey and an SMTP server of its own."""
    with (
        servers.short_folder() as folder,
        servers.redis_server() as redis_url,
        RecordingSmtpServer() as smtp,
    ):
        database = servers.sqlite_template(folder / "gatehouse.db")
        url = f"sqlite:///{database}"
        config = servers.cheap_config(folder / "instance", url, redis_url, **UNLIMITED)
        app = create_app(config, clock=Clock())
        servers.prepare_instance(app)
        rt: Runtime = app.extensions[web_runtime.EXTENSION]
        prepare(rt, smtp.port)
        try:
            yield app
        finally:
            rt.close()


def main() -> int:
    """Run the long form; return 1 if there was a failure."""
    parser = argparse.ArgumentParser(prog="tests.security.fuzz")
    parser.add_argument("--examples", type=int, default=60, help="requests made up per operation")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--principals", nargs="+", default=PRINCIPALS, choices=PRINCIPALS)
    options = parser.parse_args()
    total, started = Summary(), time.monotonic()
    with private_service() as app:
        for principal in options.principals:
            found = run(app, principal, examples=options.examples, seed=options.seed)
            print(f"{principal}: {found}\n", flush=True)
            total.add(found)
    seconds = time.monotonic() - started
    print(f"Seed {options.seed}, {seconds:.0f} s, in all: {total}")
    return bool(total.failures)


if __name__ == "__main__":
    sys.exit(main())
