"""Whether cost grows with the number of accounts and sessions."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from bench import accounts
from bench.accounts import username
from bench.lab import CLIENTS, Lab, log
from bench.load import Run
from bench.report import Figure, Row, rates, ratio
from bench.scenarios.logins import login_requests
from bench.scenarios.requests import me_request, refreshes
from bench.servers import Service

FEW = 1000
MANY = 1_000_000
SESSIONS_EACH = 3
COOKIES = 200
# A cheap hash and no response-time floor leave the login's own work, which is what could grow.
WITHOUT_HASH = {"GATEHOUSE_ARGON2": "8/1/1", "GATEHOUSE_RESPONSE_FLOOR_MS": "0"}


def _spread(users: int, count: int) -> list[str]:
    """Return the names of `count` accounts evenly spread over all."""
    return [username(1 + n * users // count) for n in range(count)]


def _me(service: Service, users: int) -> dict[str, Any]:
    return {"requests": [me_request(service, user) for user in _spread(users, COOKIES)]}


def _login(_: Service, users: int) -> dict[str, Any]:
    return {"requests": login_requests(_spread(users, FEW))}


def _refresh(service: Service, users: int) -> dict[str, Any]:
    return refreshes(service, _spread(users, CLIENTS))


WORK: dict[str, Callable[[Service, int], dict[str, Any]]] = {
    "me": _me,
    "login without hash": _login,
    "refresh": _refresh,
}


def growth(lab: Lab) -> Iterator[Row]:
    """Measure a service with few accounts and one with many in turn."""
    with ExitStack() as stack:
        services = {}
        for users in (FEW, max(2 * FEW, lab.options.count(MANY))):
            services[users] = service = lab.start(stack, **WITHOUT_HASH)
            log(f"filling {users:,} accounts and {SESSIONS_EACH * users:,} sessions")
            accounts.fill(service, range(1, users + 1), SESSIONS_EACH)

        def measured(fields: Callable[[Service, int], dict[str, Any]], users: int) -> Run:
            service = services[users]
            return lab.measure(service, lab.job(service, warmup=1.0, **fields(service, users)))

        few, many = services
        for name, fields in WORK.items():
            runs = lab.in_turn(
                {f"{users:,} accounts": partial(measured, fields, users) for users in services}
            )
            small, large = runs.values()
            cost = ratio([run.rate for run in small], [run.rate for run in large])
            figures = [*rates(runs), Figure(f"cost {many:,} : {few:,}", cost, at_most=1.3)]
            yield Row(f"growth: {name}", lab.database, figures, [*small, *large])
