"""Signing in by a provider: the start beside the bare Flask route, and what coming back costs."""

import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from urllib.parse import urlsplit

from bench import accounts, load
from bench.api import Unexpected
from bench.identity_provider import KEY, IdentityProvider
from bench.lab import Lab, Scenario
from bench.load import Job, Request, Run, render
from bench.report import Row, Target
from bench.scenarios.requests import compared
from bench.servers import Service

PREFIX = "/api/v1/auth/external-auth"
START = f"{PREFIX}/oidc/{KEY}/start"
LOOPBACK = {"GATEHOUSE_ALLOW_LOOPBACK_HTTP": "1"}
PREPARED_AT_ONCE = 8
# More than any run sends: each sign-in is good once, and a run ends when they are used up.
CALLBACKS_PER_SECOND = 400


def _start(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    """Measure starts after discovery, which is remembered for five minutes."""
    with IdentityProvider() as provider, lab.fresh(database, **LOOPBACK) as service:
        provider.use(service)
        raw = render("POST", START, {"return_path": "/files"})
        request = Request("external-auth-start", raw, 200, '"authorization_url"')
        for clients in lab.options.clients:
            measure = partial(_measured, lab, service, lab.job(service, clients, [request]))
            bare, runs = lab.pairs(partial(lab.measure_bare, clients), measure)
            yield Row(f"bare (for {scenario.name})", "-", clients, bare)
            yield compared(scenario, database, clients, bare, runs)


def _measured(lab: Lab, service: Service, job: Job) -> Run:
    return lab.measure(service, job)


def _callback(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    """Measure returns from the provider, whose own CPU is in no column."""
    with IdentityProvider() as provider, lab.fresh(database, **LOOPBACK) as service:
        provider.use(service)
        for clients in lab.options.clients:
            runs = [_callbacks(lab, service, clients) for _ in range(lab.options.repeats)]
            cpu = load.median([run.cpu_ms("server") for run in runs])
            yield Row(scenario.name, database, clients, runs, [scenario.figure("CPU", cpu, "ms")])


def _callbacks(lab: Lab, service: Service, clients: int) -> Run:
    """Come back to sign-ins that were begun, and let through by the provider, beforehand."""
    job = lab.job(service, clients, ())
    count = int((job.warmup + job.duration) * CALLBACKS_PER_SECOND)
    requests = _begun(service, count)
    before = _sessions(service)
    run = lab.measure(service, replace(job, requests=requests, limit=count))
    # A refusal is a redirect, too.
    if (signed_in := _sessions(service) - before) != run.sent:
        raise Unexpected(f"{signed_in} of {run.sent} callbacks signed in")
    return run


def _begun(service: Service, count: int) -> list[Request]:
    shares = [len(range(n, count, PREPARED_AT_ONCE)) for n in range(PREPARED_AT_ONCE)]
    with ThreadPoolExecutor(PREPARED_AT_ONCE) as pool:
        return list(chain.from_iterable(pool.map(_beginning(service), shares)))


def _beginning(service: Service) -> Callable[[int], list[Request]]:
    def begin(count: int) -> list[Request]:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        requests = []
        for _ in range(count):
            connection.request("POST", START, "{}", {"Content-Type": "application/json"})
            answer = connection.getresponse()
            cookie = str(answer.headers["Set-Cookie"]).partition(";")[0]
            url = json.load(answer)["data"]["authorization_url"]
            raw = render("GET", _let_through(url), Cookie=cookie)
            requests.append(Request("external-auth-callback", raw, 302))
        connection.close()
        return requests

    return begin


def _let_through(url: str) -> str:
    """Visit the provider, which asks nothing; return path and query of the callback."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request("GET", f"{parts.path}?{parts.query}")
    back = urlsplit(str(connection.getresponse().headers["Location"]))
    connection.close()
    return f"{back.path}?{back.query}"


def _sessions(service: Service) -> int:
    with accounts.database(service) as (cursor, _dialect):
        cursor.execute("SELECT count(*) FROM login_sessions")
        return int(cursor.fetchone()[0])


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "external-auth-start",
        "POST /auth/external-auth/.../start with discovery remembered, beside the bare route",
        _start,
        {"rate": Target(at_least=0.25)},
    ),
    Scenario(
        "external-auth-callback",
        "GET /auth/external-auth/callback of a linked identity; the provider's CPU not included",
        _callback,
        {"CPU": Target(at_most=25)},
    ),
)
