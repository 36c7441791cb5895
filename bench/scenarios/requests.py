"""Requests of a signed-in client beside the bare Flask route: me, session list, refresh."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from bench.accounts import username
from bench.api import Unexpected, cookie_header, email
from bench.lab import Lab, Scenario
from bench.load import Job, Request, Run, render
from bench.report import Row, Target
from bench.servers import Service

ME = "/api/v1/auth/me"
SESSIONS = "/api/v1/auth/sessions"
REFRESH = "/api/v1/auth/refresh"
SESSIONS_LISTED = 5
# With one client p99 is the machine's own jitter; the target speaks of 16 and more.
MIN_CLIENTS_FOR_TAIL = 16


def me_request(service: Service, user: str) -> Request:
    """Return `GET /auth/me` by the access cookie of a fresh login."""
    cookie = "service_access=" + service.api.login(user)["service_access"]
    return Request("me", render("GET", ME, Cookie=cookie), 200, email(user))


def _me_job(lab: Lab, service: Service, clients: int) -> Job:
    return lab.job(service, clients, [me_request(service, username(1))])


def _sessions_job(lab: Lab, service: Service, clients: int) -> Job:
    """List the sessions of a user who has exactly five."""
    user = username(2)
    cookies = service.api.login(user)
    service.api.call("DELETE", f"{SESSIONS}/others", cookies=cookies)
    service.api.login_all([user] * (SESSIONS_LISTED - 1))
    found = len(service.api.call("GET", SESSIONS, cookies=cookies).body["data"])
    if found != SESSIONS_LISTED:
        raise Unexpected(f"{found} sessions instead of {SESSIONS_LISTED}")
    raw = render("GET", SESSIONS, Cookie=cookie_header(cookies))
    return lab.job(service, clients, [Request("sessions", raw, 200, '"is_current"')])


def refresh_job(lab: Lab, service: Service, users: list[str]) -> Job:
    """Return chains of refreshes, one session per client, one account per session."""
    chains = [
        {name: cookies[name] for name in ("service_refresh", "service_csrf")}
        for cookies in service.api.login_all(users)
    ]
    raw = render("POST", REFRESH, Cookie="@@COOKIES@@")
    template = Request("refresh", raw, 200, '"expires_in"')
    return replace(lab.job(service, len(users), ()), template=template, chains=chains)


def _refresh_job(lab: Lab, service: Service, clients: int) -> Job:
    return refresh_job(lab, service, [username(100 + n) for n in range(clients)])


def beside_bare(
    job: Callable[[Lab, Service, int], Job],
) -> Callable[[Lab, str, Scenario], Iterator[Row]]:
    """Return a measurement that runs the bare route before each run of `job`."""

    def target(lab: Lab, service: Service, clients: int) -> Run:
        return lab.measure(service, job(lab, service, clients))

    def measure(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
        service = lab.service(database)
        for clients in lab.options.clients:
            bare, runs = lab.pairs(
                partial(lab.measure_bare, clients), partial(target, lab, service, clients)
            )
            yield Row(f"bare (for {scenario.name})", "-", clients, bare)
            yield compared(scenario, database, clients, bare, runs)

    return measure


def compared(
    scenario: Scenario, database: str, clients: int, bare: list[Run], runs: list[Run]
) -> Row:
    """Return the row of runs that were measured beside the bare route."""
    figures = [
        scenario.ratio("rate", [r.rate for r in runs], [r.rate for r in bare]),
        scenario.ratio(
            "CPU", [r.cpu_ms("server") for r in runs], [r.cpu_ms("server") for r in bare]
        ),
    ]
    if clients >= MIN_CLIENTS_FOR_TAIL:
        tails = [r.percentile(0.99) for r in runs], [r.percentile(0.99) for r in bare]
        figures.append(scenario.ratio("p99", *tails))
    return Row(scenario.name, database, clients, runs, figures)


SCENARIOS = (
    Scenario(
        "me",
        "GET /auth/me by cookie, beside the bare route",
        beside_bare(_me_job),
        {"rate": Target(at_least=0.5), "CPU": Target(at_most=2.2), "p99": Target(at_most=3)},
    ),
    Scenario(
        "sessions",
        "GET /auth/sessions of a user with 5 sessions, beside the bare route",
        beside_bare(_sessions_job),
        {"rate": Target(at_least=0.4)},
    ),
    Scenario(
        "refresh",
        "POST /auth/refresh, each client rotating a session of its own, beside the bare route",
        beside_bare(_refresh_job),
        {"rate": Target(at_least=0.2), "p99": Target(at_most=3)},
    ),
)
