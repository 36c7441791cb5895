"""Requests of a signed-in client beside the peers: who am I, session list, refresh."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.accounts import username
from bench.api import cookie_header, email
from bench.lab import CLIENTS, OURS, Lab
from bench.load import Request, Run, render
from bench.peers.jobs import JOBS, MakeFields, sign_in_until_listed
from bench.report import Figure, Row, rates, ratio
from bench.servers import Running, Service

ME = "/api/v1/auth/me"
SESSIONS = "/api/v1/auth/sessions"
REFRESH = "/api/v1/auth/refresh"
TOKENS = "/api/v1/auth/tokens"
TOKEN_USERS = 32
# Our rate, as a multiple of the best peer's, must be at least this.
LEAST_OF_READS = {"sqlite": 1.7, "postgres": 1.3}
LEAST_OF_REFRESH = 1.3
# Node compiles what is called often; before that it is several times slower.
COMPILED_AFTER_SECONDS = 3.0


def me_request(service: Service, user: str) -> Request:
    """Return `GET /auth/me` by the access cookie of a fresh login."""
    cookie = "service_access=" + service.api.login(user)["service_access"]
    return Request(render("GET", ME, Cookie=cookie), 200, email(user))


def _token_request(service: Service, user: str) -> Request:
    """Return `GET /auth/me` by a new access token."""
    cookies = service.api.login(user)
    header, csrf = cookie_header(cookies), cookies["service_csrf"]
    asked = {"name": "bench", "scopes": ["profile:read"], "expires_in_days": 1}
    made = service.api.call("POST", TOKENS, asked, Cookie=header, X_CSRF_Token=csrf).require(201)
    bearer = f"Bearer {made.body['data']['token']}"
    service.api.call("GET", ME, Authorization=bearer).require(200)  # its first use is written down
    return Request(render("GET", ME, Authorization=bearer), 200, email(user))


def me_by_token(lab: Lab) -> Iterator[Row]:
    """Compare who-am-I by access token with that by session, for the same accounts."""
    service, users = lab.service, [username(500 + n) for n in range(TOKEN_USERS)]
    kinds = {"by session": me_request, "by token": _token_request}
    requests = {name: [make(service, user) for user in users] for name, make in kinds.items()}
    turns = {
        name: partial(lab.measure, service, lab.job(service, requests=made))
        for name, made in requests.items()
    }
    runs = lab.in_turn(turns)
    by_session, by_token = ([run.rate for run in runs[name]] for name in kinds)
    figures = [*rates(runs), Figure("session : token", ratio(by_session, by_token), at_most=1.1)]
    all_runs = [run for each in runs.values() for run in each]
    yield Row("me-by-token", lab.database, figures, all_runs)


def refreshes(service: Service, users: list[str]) -> dict[str, Any]:
    """Return chains of refreshes, one session per client, one account per session."""
    chains = [
        {name: cookies[name] for name in ("service_refresh", "service_csrf")}
        for cookies in service.api.login_all(users)
    ]
    raw = render("POST", REFRESH, Cookie="@@COOKIES@@")
    return {"template": Request(raw, 200, '"expires_in"'), "chains": chains}


def _our_me(service: Service) -> dict[str, Any]:
    return {"requests": [me_request(service, username(1))]}


def _our_sessions(service: Service) -> dict[str, Any]:
    user = username(2)
    cookies = service.api.login(user)
    header = cookie_header(cookies)
    csrf = cookies["service_csrf"]
    service.api.call("DELETE", f"{SESSIONS}/others", Cookie=header, X_CSRF_Token=csrf)
    sign_in_until_listed(
        lambda: service.api.login(user),
        lambda: len(service.api.call("GET", SESSIONS, Cookie=header).body["data"]),
    )
    return {"requests": [Request(render("GET", SESSIONS, Cookie=header), 200, '"is_current"')]}


def _our_refresh(service: Service) -> dict[str, Any]:
    return refreshes(service, [username(100 + n) for n in range(CLIENTS)])


def _beside_peers(
    lab: Lab, *, work: str, ours: Callable[[Service], dict[str, Any]]
) -> Iterator[Row]:
    def peer(running: Running, fields: MakeFields) -> Run:
        job = lab.job(running, warmup=COMPILED_AFTER_SECONDS, **fields(running, CLIENTS))
        return lab.measure(running, job)

    service = lab.service
    turns = {OURS: lambda: lab.measure(service, lab.job(service, **ours(service)))}
    for name, (server, fields) in JOBS[work].items():
        if running := lab.peer(server):
            turns[name] = partial(peer, running, fields)
    runs = lab.in_turn(turns)
    figures = rates(runs)
    if theirs := [[run.rate for run in each] for name, each in runs.items() if name != OURS]:
        best = [max(rates_) for rates_ in zip(*theirs, strict=True)]
        times = ratio([run.rate for run in runs[OURS]], best)
        least = LEAST_OF_REFRESH if work == "refresh" else LEAST_OF_READS[lab.database]
        figures.append(Figure("times the best peer", times, at_least=least))
    yield Row(work, lab.database, figures, [run for each in runs.values() for run in each])


me = partial(_beside_peers, work="me", ours=_our_me)
sessions = partial(_beside_peers, work="sessions", ours=_our_sessions)
refresh = partial(_beside_peers, work="refresh", ours=_our_refresh)
