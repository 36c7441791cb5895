"""Other account services beside the same yardsticks: who-am-I, session list, refresh, login.

What they cannot do is not measured: Flask-Security-Too lists no sessions, better-auth has one
session that slides and no refresh, django-allauth refreshes JSON Web Tokens only.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from bench import accounts
from bench.accounts import username
from bench.api import PASSWORD, Answer, Unexpected, cookie_header, email
from bench.lab import Lab, Scenario, log_progress
from bench.load import Job, Request, Run, render
from bench.peers.servers import Allauth, AllauthJwt, BetterAuth, FlaskSecurity, Peer
from bench.report import Row
from bench.scenarios.logins import SATURATING_CLIENTS, WARMUP_SECONDS, pure_argon2id
from bench.scenarios.requests import SESSIONS_LISTED, compared
from bench.servers import Running
from tests.support.servers import NotStarted

CLIENTS = 16
# Node compiles what is called often; before that it is several times slower.
COMPILED_AFTER_SECONDS = 3.0
LOGIN = "login"
ALLAUTH = "/_allauth/app/v1"
BETTER_AUTH = "/api/auth"

MakeJob = Callable[[Lab, Running, int], Job]


@dataclass(frozen=True)
class Server:
    """One way to run a peer and the requests that are measured there."""

    peer: Peer
    jobs: Mapping[str, MakeJob]


def _measure(
    lab: Lab, database: str, scenario: Scenario, *, name: str, servers: tuple[Server, ...]
) -> Iterator[Row]:
    """Measure all requests of a peer; one that fails does not stop the others."""
    problems = []
    for server in servers:
        with ExitStack() as stack:
            running = lab.start_peer(stack, server.peer, database)
            for request, job in server.jobs.items():
                try:
                    yield from _rows(lab, database, scenario, running, f"{request}, {name}", job)
                except (NotStarted, Unexpected, RuntimeError, OSError, KeyError) as problem:
                    log_progress(f"{request}, {name} on {database}: {problem!r}")
                    problems.append(f"{request}: {problem}")
    if problems:
        raise Unexpected("; ".join(problems))


def _rows(
    lab: Lab, database: str, scenario: Scenario, running: Running, label: str, job: MakeJob
) -> Iterator[Row]:
    if label.startswith(LOGIN):
        yield _login_row(lab, database, scenario, running, label, job)
        return

    def measured() -> Run:
        chosen = replace(job(lab, running, CLIENTS), warmup=COMPILED_AFTER_SECONDS)
        return lab.measure(running, chosen)

    bare, runs = lab.pairs(partial(lab.measure_bare, CLIENTS), measured)
    yield Row(f"bare (for {label})", "-", CLIENTS, bare)
    yield replace(compared(scenario, database, CLIENTS, bare, runs), scenario=label)


def _login_row(
    lab: Lab, database: str, scenario: Scenario, running: Running, label: str, job: MakeJob
) -> Row:
    """Compare with a pure Argon2id loop, as our own logins are."""
    pure, runs = [], []
    for _ in range(lab.options.repeats):
        rate, foreign = pure_argon2id(lab, running)
        run = lab.measure(running, job(lab, running, SATURATING_CLIENTS))
        run.foreign_cores = max(run.foreign_cores, foreign)
        pure.append(rate)
        runs.append(run)
    ratio = scenario.ratio("of pure Argon2id", [run.rate for run in runs], pure)
    return Row(label, database, SATURATING_CLIENTS, runs, [ratio])


def _one(request: Callable[[Running], Request]) -> MakeJob:
    return lambda lab, running, clients: lab.job(running, clients, [request(running)])


def _logins(path: str, expect: str, origin: bool = False) -> MakeJob:
    """Return logins round the accounts; so long as our own (`bench.scenarios.logins`)."""

    def job(lab: Lab, running: Running, clients: int) -> Job:
        headers = _origin(running) if origin else {}
        requests = [
            Request(LOGIN, render("POST", path, _credentials(n), **headers), 200, expect)
            for n in accounts.ORDINARY
        ]
        usual = lab.job(running, clients, requests)
        return replace(usual, warmup=WARMUP_SECONDS, duration=2 * usual.duration)

    return job


def _refreshes(path: str, expect: str, token: Callable[[Running, int], str]) -> MakeJob:
    """Return chains of refreshes, one session per client, one account per session."""

    def job(lab: Lab, running: Running, clients: int) -> Job:
        chains = [{"refresh_token": token(running, 100 + n)} for n in range(clients)]
        raw = render("POST", path, {"refresh_token": "@@TOKEN@@"})
        template = Request("refresh", raw, 200, expect)
        usual = lab.job(running, clients, ())
        return replace(usual, template=template, chains=chains, chained_by="body")

    return job


def _credentials(number: int) -> dict[str, str]:
    return {"email": email(username(number)), "password": PASSWORD}


def _signed_in(running: Running, path: str, number: int, **headers: str) -> Answer:
    answer = running.api.call("POST", path, _credentials(number), more_headers=headers)
    running.api.require(answer, 200)
    return answer


def _allauth_token(running: Running, number: int, name: str = "session_token") -> str:
    token: str = _signed_in(running, f"{ALLAUTH}/auth/login", number).body["meta"][name]
    return token


def _allauth_me(running: Running) -> Request:
    token = _allauth_token(running, 1)
    raw = render("GET", f"{ALLAUTH}/auth/session", X_Session_Token=token)
    return Request("me", raw, 200, email(username(1)))


def _allauth_sessions(running: Running) -> Request:
    path = f"{ALLAUTH}/auth/sessions"
    token = _allauth_token(running, 2)
    headers = {"X-Session-Token": token}
    _sign_in_until(
        SESSIONS_LISTED,
        lambda: _allauth_token(running, 2),
        lambda: len(running.api.call("GET", path, more_headers=headers).body["data"]),
    )
    return Request("sessions", render("GET", path, X_Session_Token=token), 200, '"is_current"')


def _sign_in_until(number: int, sign_in: Callable[[], object], listed: Callable[[], int]) -> None:
    """Sign in until so many sessions are listed: a repeated run finds some already."""
    while (found := listed()) < number:
        sign_in()
    if found != number:
        raise Unexpected(f"{found} sessions instead of {number}")


def _flask_security_tokens(running: Running, number: int) -> dict[str, str]:
    response = _signed_in(running, "/login?include_auth_token", number).body["response"]
    tokens: dict[str, str] = response["user"] | response
    return tokens


def _flask_security_me(running: Running) -> Request:
    token = _flask_security_tokens(running, 1)["authentication_token"]
    raw = render("GET", "/me", Authentication_Token=token, Accept="application/json")
    return Request("me", raw, 200, email(username(1)))


def _origin(running: Running) -> dict[str, str]:
    return {"Origin": f"http://127.0.0.1:{running.port}"}


def _better_auth_cookie(running: Running, number: int) -> str:
    path = f"{BETTER_AUTH}/sign-in/email"
    return cookie_header(_signed_in(running, path, number, **_origin(running)).cookies)


def _better_auth_me(running: Running) -> Request:
    cookie = _better_auth_cookie(running, 1)
    return Request(
        "me", render("GET", f"{BETTER_AUTH}/get-session", Cookie=cookie), 200, email(username(1))
    )


def _better_auth_sessions(running: Running) -> Request:
    path = f"{BETTER_AUTH}/list-sessions"
    cookie = _better_auth_cookie(running, 2)
    _sign_in_until(
        SESSIONS_LISTED,
        lambda: _better_auth_cookie(running, 2),
        lambda: len(running.api.call("GET", path, more_headers={"Cookie": cookie}).body),
    )
    return Request("sessions", render("GET", path, Cookie=cookie), 200, '"userAgent"')


def _scenario(name: str, title: str, *servers: Server) -> Scenario:
    requests = ", ".join(request for server in servers for request in server.jobs)
    return Scenario(
        name,
        f"{title}: {requests}, beside the same yardsticks",
        partial(_measure, name=title, servers=servers),
        is_opt_in=True,
    )


PEERS = {
    "peer-allauth": "django-allauth",
    "peer-flask-security": "Flask-Security-Too",
    "peer-better-auth": "better-auth",
}
SCENARIOS = (
    _scenario(
        "peer-allauth",
        PEERS["peer-allauth"],
        Server(
            Allauth(),
            {
                "me": _one(_allauth_me),
                "sessions": _one(_allauth_sessions),
                LOGIN: _logins(f"{ALLAUTH}/auth/login", '"session_token"'),
            },
        ),
        Server(
            AllauthJwt(),
            {
                "refresh": _refreshes(
                    f"{ALLAUTH}/tokens/refresh",
                    '"access_token"',
                    partial(_allauth_token, name="refresh_token"),
                )
            },
        ),
    ),
    _scenario(
        "peer-flask-security",
        PEERS["peer-flask-security"],
        Server(
            FlaskSecurity(),
            {
                "me": _one(_flask_security_me),
                "refresh": _refreshes(
                    "/refresh-token",
                    '"authentication_token"',
                    lambda running, number: _flask_security_tokens(running, number)[
                        "refresh_token"
                    ],
                ),
                LOGIN: _logins("/login?include_auth_token", '"authentication_token"'),
            },
        ),
    ),
    _scenario(
        "peer-better-auth",
        PEERS["peer-better-auth"],
        Server(
            BetterAuth(),
            {
                "me": _one(_better_auth_me),
                "sessions": _one(_better_auth_sessions),
                LOGIN: _logins(f"{BETTER_AUTH}/sign-in/email", '"token"', origin=True),
            },
        ),
    ),
)
