"""What requests cost at the least, beside the bare route: how much of a figure is the service's."""

from collections.abc import Iterator, Sequence
from functools import partial

from bench import least
from bench.lab import Lab, Scenario
from bench.load import Request, render
from bench.report import Row
from bench.scenarios.requests import compared


def _cookie(account: int) -> str:
    session = least.session_of(account)
    return f"token={session}.{least.signature(session)}"


def _of_sessions(method: str, path: str, expect: str) -> Sequence[Request]:
    return [
        Request(path, render(method, path, Cookie=_cookie(account)), 200, expect)
        for account in range(least.ACCOUNTS)
    ]


def _second_steps() -> Sequence[Request]:
    waiting = {"flow_token": least.WAITING, "code": "000000"}
    return [
        Request(
            "second-step",
            render("POST", "/second-step", waiting | {"user_id": account}),
            200,
            '"authenticated"',
        )
        for account in range(least.ACCOUNTS)
    ]


def _beside_bare(
    lab: Lab, database: str, scenario: Scenario, *, requests: Sequence[Request]
) -> Iterator[Row]:
    server = lab.least(database)
    for clients in lab.options.clients:
        job = lab.job(server, clients, requests)
        bare, runs = lab.pairs(
            partial(lab.measure_bare, clients), partial(lab.measure, server, job)
        )
        yield Row(f"bare (for {scenario.name})", "-", clients, bare)
        yield compared(scenario, database, clients, bare, runs)


SCENARIOS = tuple(
    Scenario(
        f"least-{name}",
        f"the least that {what} can cost, by hand in one Flask route, beside the bare one",
        partial(_beside_bare, requests=requests),
        only_by_name=True,
    )
    for name, what, requests in (
        ("me", "GET /auth/me", _of_sessions("GET", "/me", '"username"')),
        ("sessions", "GET /auth/sessions", _of_sessions("GET", "/sessions", '"user_agent"')),
        ("refresh", "POST /auth/refresh", _of_sessions("POST", "/refresh", '"expires_in"')),
        ("totp", "a login's second step with a code of the app", _second_steps()),
    )
)
