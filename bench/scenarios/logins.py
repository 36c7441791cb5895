"""Password logins: their rate, what they do to others, and what their timing tells."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import sqrt

from bench import accounts, load, procs
from bench.accounts import username
from bench.api import credentials
from bench.argon import pure_rate
from bench.lab import Lab, Scenario
from bench.load import Job, Request, Run, render
from bench.report import Figure, Row, Target
from bench.scenarios.requests import me_request
from bench.servers import Running, Service

LOGIN = "/api/v1/auth/login"
# Every answer takes 350 to 475 ms (response-time floor), so it takes many clients to keep two
# cores busy; with fewer the rate says nothing about the cost.
SATURATING_CLIENTS = 64
WARMUP_SECONDS = 1.5
TIMING_REQUESTS = 200
TIMING_CLIENTS = 8
MAX_RUN_SECONDS = 600


def login_request(user: str, label: str = "login") -> Request:
    """Return a login that succeeds."""
    return Request(label, render("POST", LOGIN, credentials(user)), 200, '"authenticated"')


def login_job(lab: Lab, service: Service, clients: int, numbers: Sequence[int]) -> Job:
    """Return logins going round some accounts; twice the usual length, as they are few a second."""
    job = lab.job(service, clients, [login_request(username(n)) for n in numbers])
    return replace(job, warmup=WARMUP_SECONDS, duration=2 * job.duration)


def _login(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    service = lab.service(database)
    for clients in sorted({*lab.options.clients, SATURATING_CLIENTS}):
        pure, runs = [], []
        for _ in range(lab.options.repeats):
            rate, foreign = pure_argon2id(lab, service)
            run = lab.measure(service, login_job(lab, service, clients, accounts.ORDINARY))
            run.foreign_cores = max(run.foreign_cores, foreign)
            pure.append(rate)
            runs.append(run)
        ratio = scenario.ratio("of pure Argon2id", [run.rate for run in runs], pure)
        if clients < SATURATING_CLIENTS:
            ratio = replace(ratio, target=None)
        pure_figure = Figure("pure Argon2id", load.median(pure), unit="/s")
        yield Row(scenario.name, database, clients, runs, [ratio, pure_figure])


def pure_argon2id(lab: Lab, server: Running) -> tuple[float, float]:
    """Return pure Argon2id verifications per second, and the foreign CPU meanwhile."""
    procs.wait_until_quiet(server.server.pid, lab.options.noise, lab.options.wait)
    before = procs.sample()
    rate = pure_rate(lab.options.duration)
    return rate, procs.foreign_load(before, procs.sample())


def _login_sessions(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    """Log in on accounts with 1 and with 1,000 live sessions, in turn."""
    service = lab.service(database)

    def logins(numbers: range, sessions: int) -> Run:
        accounts.set_sessions(service, numbers, sessions)
        return lab.measure(service, login_job(lab, service, SATURATING_CLIENTS, numbers))

    few, many = lab.pairs(
        lambda: logins(accounts.FEW_SESSIONS, 1), lambda: logins(accounts.MANY_SESSIONS, 1000)
    )
    rates = [run.rate for run in many], [run.rate for run in few]
    costs = [run.cpu_ms("server") for run in many], [run.cpu_ms("server") for run in few]
    figures = [scenario.ratio("rate 1,000 : 1", *rates), scenario.ratio("CPU 1,000 : 1", *costs)]
    yield Row("login, 1 session", database, SATURATING_CLIENTS, few)
    yield Row("login, 1,000 sessions", database, SATURATING_CLIENTS, many, figures)


def _me_during_logins(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    service = lab.service(database)
    flood = login_job(lab, service, SATURATING_CLIENTS, accounts.ORDINARY)
    flood = replace(flood, duration=MAX_RUN_SECONDS)
    all_logins: list[Run] = []
    for clients in lab.options.clients:
        logins: list[Run] = []
        job = lab.job(service, clients, [me_request(service, username(1))])
        alone, crowded = lab.pairs(
            partial(lab.measure, service, job), partial(_during, flood, logins, service, job)
        )
        tails = [r.percentile(0.99) for r in crowded], [r.percentile(0.99) for r in alone]
        rate = Figure("logins meanwhile", load.median([run.rate for run in logins]), unit="/s")
        yield Row("me alone", database, clients, alone)
        figures = [scenario.ratio("p99", *tails), rate]
        yield Row("me during logins", database, clients, crowded, figures)
        all_logins += logins
    yield Row("logins during me", database, SATURATING_CLIENTS, all_logins)


def _during(flood: Job, floods: list[Run], service: Service, job: Job) -> Run:
    """Run `job` beside `flood`, whose own result is added to `floods`."""
    with load.background(flood) as finished:
        run = load.run(job, service.parts)
    floods.extend(finished)
    return run


def _refused(kind: str, identifier: str) -> Request:
    raw = render("POST", LOGIN, credentials(identifier, "not the password"))
    return Request(kind, raw, 401, '"auth.credentials_failed"')


def _login_timing(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    """Fail to log in in three ways, in turn; every request meets another account."""
    service = lab.service(database)
    requests = []
    for n in range(lab.options.count(TIMING_REQUESTS)):
        requests += [
            _refused("unknown", f"nobody{n}"),
            _refused("wrong password", username(accounts.WRONG_PASSWORD[n])),
            _refused("disabled", username(accounts.DISABLED[n])),
        ]
    job = lab.job(service, TIMING_CLIENTS, requests)
    job = replace(job, limit=len(requests), warmup=0, duration=MAX_RUN_SECONDS)
    run = lab.measure(service, job)
    figures = [Figure(kind, load.median(run.latencies[kind]), unit="ms") for kind in run.latencies]
    spread = [Figure(f"± {kind}", median_error(v), unit="ms") for kind, v in run.latencies.items()]
    difference = largest_difference(run)
    figures.append(scenario.figure("largest difference in standard errors", difference))
    yield Row(scenario.name, database, TIMING_CLIENTS, [run], figures + spread)


def median_error(values: list[float]) -> float:
    """Return the standard error of the median of sorted values, whatever their distribution."""
    half, middle = round(sqrt(len(values)) / 2), len(values) // 2
    return (values[min(middle + half, len(values) - 1)] - values[middle - half]) / 2


def largest_difference(run: Run) -> float:
    """Return the largest distance of two medians, in units of its standard error."""
    known = [(load.median(v), median_error(v)) for v in run.latencies.values()]
    return max(abs(a - b) / sqrt(x * x + y * y) for a, x in known for b, y in known)


SCENARIOS = (
    Scenario(
        "login",
        "POST /auth/login over 1,000 accounts, beside a pure Argon2id loop",
        _login,
        {"of pure Argon2id": Target(at_least=0.85)},
    ),
    Scenario(
        "login-sessions",
        "logins on accounts with 1 and with 1,000 live sessions",
        _login_sessions,
        {"rate 1,000 : 1": Target(at_least=0.95)},
    ),
    Scenario(
        "me-during-logins",
        "GET /auth/me alone and while 64 clients log in",
        _me_during_logins,
        {"p99": Target(at_most=3)},
    ),
    Scenario(
        "login-timing",
        "unknown account, wrong password, disabled account: 200 refused logins each",
        _login_timing,
        {"largest difference in standard errors": Target(at_most=3)},
    ),
)
