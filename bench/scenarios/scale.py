"""Whether cost grows with the number of users and sessions (PostgreSQL)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

from bench import accounts
from bench.accounts import username
from bench.lab import Lab, Scenario, log_progress
from bench.load import Job, Run
from bench.report import Row, Target
from bench.scenarios.logins import login_request
from bench.scenarios.requests import me_request, refresh_job
from bench.servers import Service

SMALL_USERS = 1000
SESSIONS_PER_USER = 3
CLIENTS = 16
COOKIES = 200
LOGIN_ACCOUNTS = 1000
# A cheap hash and no response-time floor leave the login's own work, which is what could grow.
LOGIN_WITHOUT_HASH = {"GATEHOUSE_ARGON2": "8/1/1", "GATEHOUSE_RESPONSE_FLOOR_MS": "0"}


def _spread(users: int, count: int) -> list[str]:
    """Return the names of `count` accounts evenly spread over all."""
    return [username(1 + n * users // count) for n in range(count)]


def _me_job(lab: Lab, service: Service, users: int) -> Job:
    return lab.job(service, CLIENTS, [me_request(service, u) for u in _spread(users, COOKIES)])


def _login_job(lab: Lab, service: Service, users: int) -> Job:
    return lab.job(service, CLIENTS, [login_request(u) for u in _spread(users, LOGIN_ACCOUNTS)])


def _refresh_job(lab: Lab, service: Service, users: int) -> Job:
    return refresh_job(lab, service, _spread(users, CLIENTS))


JOBS: dict[str, Callable[[Lab, Service, int], Job]] = {
    "me": _me_job,
    "login without hash": _login_job,
    "refresh": _refresh_job,
}


def _scale(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    with ExitStack() as stack:
        sizes = SMALL_USERS, lab.options.scale
        services = []
        for users in sizes:
            service = lab.start(stack, database, **LOGIN_WITHOUT_HASH)
            log_progress(f"filling {users:,} users and {SESSIONS_PER_USER * users:,} sessions")
            accounts.fill(service, range(1, users + 1), SESSIONS_PER_USER)
            services.append(service)
        for name, job in JOBS.items():
            yield from _compared(lab, scenario, name, job, services, sizes)


def _compared(
    lab: Lab,
    scenario: Scenario,
    name: str,
    job: Callable[[Lab, Service, int], Job],
    services: list[Service],
    sizes: tuple[int, int],
) -> Iterator[Row]:
    def measured(which: int) -> Run:
        service = services[which]
        return lab.measure(service, replace(job(lab, service, sizes[which]), warmup=1.0))

    small, large = lab.pairs(lambda: measured(0), lambda: measured(1))
    cost = scenario.ratio("cost", [run.rate for run in small], [run.rate for run in large])
    cpu = scenario.ratio("CPU", [_cpu(run) for run in large], [_cpu(run) for run in small])
    yield Row(f"{name}, {sizes[0]:,} users", "postgres", CLIENTS, small)
    yield Row(f"{name}, {sizes[1]:,} users", "postgres", CLIENTS, large, [cost, cpu])


def _cpu(run: Run) -> float:
    return run.cpu_ms("server") + run.cpu_ms("postgres")


SCENARIOS = (
    Scenario(
        "scale",
        "me, login without its hash and refresh with 1,000 users and with --scale users",
        _scale,
        {"cost": Target(at_most=1.3), "CPU": Target(at_most=1.3)},
        databases=("postgres",),
        is_opt_in=True,
        runs_last=True,
    ),
)
