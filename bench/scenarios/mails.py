"""Accounts by mail: registrations, the outbox, and what its flows tell by their timing."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from time import monotonic, sleep

from app.web.padding import JITTER_SECONDS
from bench import accounts, load, outbox, procs
from bench.accounts import username
from bench.api import PASSWORD, Unexpected, email
from bench.lab import Lab, Scenario
from bench.load import Job, Request, Run, render
from bench.report import Figure, Row, Target
from bench.scenarios.logins import (
    MAX_RUN_SECONDS,
    SATURATING_CLIENTS,
    TIMING_CLIENTS,
    TIMING_REQUESTS,
    largest_difference,
    login_job,
    median_error,
)
from bench.scenarios.requests import me_request
from bench.servers import Service
from bench.sink import Arrivals, Sink

REGISTER = "/api/v1/auth/register"
RESEND = "/api/v1/auth/register/resend"
RESET = "/api/v1/auth/password/reset/request"
FLOOR_SECONDS = 0.35
# A fresh service opens its connections and compiles its statements first.
WARMUP_SECONDS = 4.0
SETTINGS_SECONDS = 1.0
DRAINED_MAILS = 3000
WAITING_MAILS = 100_000
# As many as a short run cannot outlast, however short the look.
MIN_WAITING_MAILS = 30_000
ME_CLIENTS = 16
MAX_MAIL_WAIT_SECONDS = 60.0


@contextmanager
def _mailing(lab: Lab, database: str) -> Iterator[tuple[Service, Sink]]:
    """Run a service of one's own that sends its mails to a sink."""
    with Sink() as sink, lab.fresh(database) as service:
        sink.use(service)
        sleep(SETTINGS_SECONDS)
        yield service, sink


def _registration(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    names = (f"new{n}" for n in count())
    with _mailing(lab, database) as (service, sink):
        accounts.fill(service, accounts.ORDINARY)
        logins_job = login_job(lab, service, SATURATING_CLIENTS, accounts.ORDINARY)
        logins_job = replace(logins_job, warmup=WARMUP_SECONDS)
        # More cannot be answered, since each client waits for the response-time floor.
        seconds = logins_job.warmup + logins_job.duration
        most = int(SATURATING_CLIENTS * (seconds / FLOOR_SECONDS + 2))

        def register() -> Run:
            requests = [_register_request(next(names)) for _ in range(most)]
            return lab.measure(service, replace(logins_job, requests=requests))

        logins, runs = lab.pairs(lambda: lab.measure(service, logins_job), register)
        mails = sink.take_arrivals().count
    yield Row("login (for registration)", database, SATURATING_CLIENTS, logins)
    figures = [
        scenario.ratio("rate", [run.rate for run in runs], [run.rate for run in logins]),
        Figure("mails meanwhile", mails),
    ]
    yield Row(scenario.name, database, SATURATING_CLIENTS, runs, figures)


def _register_request(name: str) -> Request:
    body = {"username": name, "email": email(name), "password": PASSWORD}
    return Request("register", render("POST", REGISTER, body), 201, email(name))


def _mail_drain(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    """Drain by one process on the first core; the sink is on the last."""
    cores = sorted(os.sched_getaffinity(0))
    with Sink(cores[-1:]) as sink, lab.fresh(database) as service:
        sink.use(service)
        service.server.stop()  # its workers would drain, too
        idle = _flush(service, sink, 0, cores[:1])
        runs, mails = [], lab.options.count(DRAINED_MAILS)
        for _ in range(lab.options.repeats):
            outbox.fill(service, mails)
            procs.wait_until_quiet(service.server.pid, lab.options.noise, lab.options.wait)
            run = _flush(service, sink, mails, cores[:1])
            run.cpu = {part: used - idle.cpu[part] for part, used in run.cpu.items()}
            runs.append(run)
            outbox.clear(service)
    rate = scenario.figure("mails/s", load.median([run.rate for run in runs]))
    cpu = Figure("CPU", load.median([run.cpu_ms("server") for run in runs]), unit="ms/mail")
    yield Row(scenario.name, database, 1, runs, [rate, cpu])


def _flush(service: Service, sink: Sink, mails: int, cores: list[int]) -> Run:
    """Send all mails; the time is that between the first and the last, without the start."""
    sink.take_arrivals()
    before, used = procs.sample(), _children_seconds()
    service.flask("mail", "flush", cores=cores)
    cpu = {"server": _children_seconds() - used}
    after, arrivals = procs.sample(), sink.take_arrivals()
    if "postgres" in service.parts:
        root = service.parts["postgres"]
        cpu["postgres"] = after.tree_seconds(root) - before.tree_seconds(root)
    return Run(
        counted=arrivals.count,
        sent=mails,
        seconds=(arrivals.last_at - arrivals.first_at) or 1.0,
        failed=mails - arrivals.count,
        first_failure="",
        latencies={},
        foreign_cores=procs.foreign_load(before, after),
        cpu=cpu,
    )


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _me_during_mails(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    """Measure with an empty outbox, while mails are queued, wait, and leave."""
    idle, filling, queued, waiting, draining, sent = [], [], [], [], [], []
    with _mailing(lab, database) as (service, sink):
        job = lab.job(service, ME_CLIENTS, [me_request(service, Service.ADMIN)])
        for _ in range(lab.options.repeats):
            idle.append(lab.measure(service, job))
            run, rate = _while_filling(lab, service, job)
            filling.append(run)
            queued.append(rate)
            waiting.append(lab.measure(service, job))
            outbox.make_due(service)
            run, rate = _while_draining(service, sink, job)
            draining.append(run)
            sent.append(rate)
            outbox.clear(service)
    tails = [run.percentile(0.99) for run in idle]
    yield Row("me, empty outbox", database, ME_CLIENTS, idle)
    ratio = scenario.ratio("p99 queueing", [run.percentile(0.99) for run in filling], tails)
    mails = Figure("mails meanwhile", load.median(queued), unit="/s")
    yield Row("me, 100,000 mails are queued", database, ME_CLIENTS, filling, [ratio, mails])
    ratio = scenario.ratio("p99 waiting", [run.percentile(0.99) for run in waiting], tails)
    yield Row("me, 100,000 mails wait", database, ME_CLIENTS, waiting, [ratio])
    ratio = scenario.ratio("p99 draining", [run.percentile(0.99) for run in draining], tails)
    mails = Figure("mails meanwhile", load.median(sent), unit="/s")
    yield Row("me, 100,000 mails leave", database, ME_CLIENTS, draining, [ratio, mails])


def _while_filling(lab: Lab, service: Service, job: Job) -> tuple[Run, float]:
    """Measure while another process queues mails; return the run and the mails per second."""
    mails = max(lab.options.count(WAITING_MAILS), MIN_WAITING_MAILS)
    procs.wait_until_quiet(service.server.pid, lab.options.noise, lab.options.wait)
    with outbox.being_filled(service, mails) as filling:
        before, began = outbox.length(service), monotonic()
        run = load.run(job, service.parts)
        rate = (outbox.length(service) - before) / (monotonic() - began)
        if filling.done():
            raise Unexpected("all mails were queued before the run had ended; take a shorter one")
    return run, rate


def _while_draining(service: Service, sink: Sink, job: Job) -> tuple[Run, float]:
    """Measure once mails leave; return the run and the mails per second."""
    end = monotonic() + MAX_MAIL_WAIT_SECONDS
    while not sink.take_arrivals().count:
        if monotonic() > end:
            raise Unexpected("no mail leaves")
        sleep(0.1)
    run = load.run(job, service.parts)
    return run, _rate(sink.take_arrivals())


def _rate(arrivals: Arrivals) -> float:
    return max(0, arrivals.count - 1) / ((arrivals.last_at - arrivals.first_at) or 1.0)


def _mail_timing(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    """Ask for a mail to existing and unknown addresses, in turn; each is asked for once."""
    flows = (
        ("resend", RESEND, "identifier", accounts.NOT_ACTIVATED),
        ("reset", RESET, "email", accounts.ORDINARY),
    )
    with _mailing(lab, database) as (service, sink):
        accounts.fill(service, accounts.ORDINARY)
        accounts.fill(service, accounts.NOT_ACTIVATED)
        accounts.deactivate(service, accounts.NOT_ACTIVATED)
        for name, path, field, numbers in flows:
            requests = []
            for n in range(lab.options.count(TIMING_REQUESTS)):
                for kind, user in ("existing", username(numbers[n])), ("unknown", f"nobody{n}"):
                    raw = render("POST", path, {field: email(user)})
                    requests.append(Request(kind, raw, 200, '"message"'))
            job = lab.job(service, TIMING_CLIENTS, requests)
            job = replace(job, limit=len(requests), warmup=0, duration=MAX_RUN_SECONDS)
            sink.take_arrivals()
            run = lab.measure(service, job)
            figures = _timing_figures(scenario, run)
            procs.wait_until_quiet(service.server.pid, lab.options.noise, lab.options.wait)
            # Shows that the existing addresses were written to.
            figures.append(Figure("mails", sink.take_arrivals().count))
            yield Row(f"{scenario.name}, {name}", database, TIMING_CLIENTS, [run], figures)


def _timing_figures(scenario: Scenario, run: Run) -> list[Figure]:
    medians = {kind: load.median(values) for kind, values in run.latencies.items()}
    difference = max(medians.values()) - min(medians.values())
    return [
        scenario.figure("difference of medians", difference, "ms"),
        Figure("in standard errors", largest_difference(run)),
        *(Figure(kind, value, unit="ms") for kind, value in medians.items()),
        *(Figure(f"± {kind}", median_error(v), unit="ms") for kind, v in run.latencies.items()),
    ]


SCENARIOS = (
    Scenario(
        "registration",
        "POST /auth/register with an activation mail to a local sink, beside logins",
        _registration,
        {"rate": Target(at_least=0.8)},
    ),
    Scenario(
        "mail-drain",
        "3,000 mails drained by `flask mail flush` on one core to a local sink",
        _mail_drain,
        {"mails/s": Target(at_least=100)},
    ),
    Scenario(
        "me-during-mails",
        "GET /auth/me while 100,000 mails are queued, while they wait, and while they leave",
        _me_during_mails,
        {
            "p99 queueing": Target(at_most=1.5),
            "p99 waiting": Target(at_most=1.5),
            "p99 draining": Target(at_most=1.5),
        },
    ),
    Scenario(
        "mail-timing",
        "resend and password reset: 200 existing and 200 unknown addresses each",
        _mail_timing,
        {"difference of medians": Target(at_most=1000 * JITTER_SECONDS)},
    ),
)
