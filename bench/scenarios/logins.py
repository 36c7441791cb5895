"""Password logins: their rate, what they do to other requests, and to a worker's memory."""

import json
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from bench import accounts, load, procs
from bench.accounts import username
from bench.api import LOGIN, credentials
from bench.argon import pure_rate
from bench.lab import OURS, Lab
from bench.load import Job, Request, Run, render
from bench.peers.jobs import JOBS
from bench.report import Figure, Row, rates, ratio
from bench.scenarios.requests import me_request
from bench.servers import Running, Service

# Every answer takes 350 to 475 ms (response-time floor), so it takes many clients to keep two
# cores busy.
SATURATING_CLIENTS = 64
FEW_CLIENTS = 8
WARMUP_SECONDS = 1.5
MAX_RUN_SECONDS = 600
# Until every worker has read a changed setting.
SETTINGS_SECONDS = 2
LOGINS = 2000
# Five wrong passwords for each: the eleventh would not be looked at.
REFUSED_ACCOUNTS, REFUSALS = 20, 100
IMPORTED = {
    "bcrypt-12": "$2b$12$5BJqKfqMQvV7nS.yUguNcueVirQqDBGaLXSqj.rs.pZPlNR0UX/HK",
    "django": f"pbkdf2_sha256$600000$saltsaltsaltsaltsaltsa${'A' * 43}=",
    "keycloak": f"$pbkdf2-sha256$27500$c2FsdHNhbHRzYWx0c2FsdA${'A' * 43}",
    "scrypt": f"$scrypt$ln=14,r=16,p=1$c2FsdHNhbHRzYWx0c2FsdA${'A' * 43}",
    "argon2": f"$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHRzYWx0c2FsdA${'A' * 43}",
}
LEAST_OF = {
    "pure Argon2id": 1.15,
    "django-allauth": 1.3,
    "Flask-Security-Too": 1.3,
    "better-auth": 0.75,
}


def login_requests(users: list[str]) -> list[Request]:
    """Return logins that succeed."""
    raws = (render("POST", LOGIN, credentials(user)) for user in users)
    return [Request(raw, 200, '"authenticated"') for raw in raws]


def _job(lab: Lab, running: Running, clients: int = SATURATING_CLIENTS, **fields: Any) -> Job:
    """Return logins going round the accounts; twice the usual length, as they are few a second."""
    if isinstance(running, Service):
        fields = {"requests": login_requests([username(n) for n in accounts.ORDINARY])} | fields
    usual = {"warmup": WARMUP_SECONDS, "duration": 2 * lab.options.duration}
    return lab.job(running, clients, **(usual | fields))


def login(lab: Lab) -> Iterator[Row]:
    """Compare our logins with the hash alone and with the peers'."""
    service = lab.service
    pure: list[float] = []

    def ours() -> Run:
        procs.wait_until_quiet(service.server.pid, lab.options.noise, lab.options.wait)
        pure.append(pure_rate(lab.options.duration))
        return lab.measure(service, _job(lab, service))

    turns = {OURS: ours}
    for name, (server, fields) in JOBS["login"].items():
        if running := lab.peer(server):
            job = _job(lab, running, **fields(running, SATURATING_CLIENTS))
            turns[name] = partial(lab.measure, running, job)
    runs = lab.in_turn(turns)
    named = {"pure Argon2id": pure} | {
        name: [run.rate for run in each] for name, each in runs.items() if name != OURS
    }
    our_rates = [run.rate for run in runs[OURS]]
    ratios = [
        Figure(f"times {name}", ratio(our_rates, theirs), at_least=LEAST_OF[name])
        for name, theirs in named.items()
    ]
    all_runs = [run for each in runs.values() for run in each]
    yield Row("login", lab.database, [*rates(runs), *ratios], all_runs)


def me_during_logins(lab: Lab) -> Iterator[Row]:
    """Compare the tail of who-am-I while logins saturate the machine with the idle one."""
    service = lab.service
    flood = _job(lab, service, duration=MAX_RUN_SECONDS)
    job = lab.job(service, requests=[me_request(service, username(1))])

    def crowded() -> Run:
        with load.background(flood):
            return load.run(job, service.parts)

    runs = lab.in_turn({"alone": lambda: lab.measure(service, job), "during logins": crowded})
    tails = {name: [run.percentile(0.99) for run in each] for name, each in runs.items()}
    times = ratio(tails["during logins"], tails["alone"])
    figures = [*rates(runs), Figure("p99, times idle", times, at_most=5)]
    yield Row("me-during-logins", lab.database, figures, runs["alone"])


def notice(lab: Lab) -> Iterator[Row]:
    """Compare logins by new browsers, of which a mail tells, with those of which none does.

    The load sends no cookie, so every login is one by a new browser, after an account's first.
    Fewer clients than keep the machine busy: what they wait for is compared, not what delivering
    mails costs the machine.
    """
    with ExitStack() as stack:
        service = lab.start(stack)
        accounts.fill(service, accounts.ORDINARY)
        service.api.login_all(username(number) for number in accounts.ORDINARY)

        def logins(switch: str) -> Run:
            service.flask("config", "set", "auth_new_browser_notice", switch, stdin="")
            time.sleep(SETTINGS_SECONDS)
            return lab.measure(service, _job(lab, service, clients=FEW_CLIENTS))

        runs = lab.in_turn({"without": partial(logins, "false"), "with": partial(logins, "true")})
        without, with_notice = ([run.rate for run in each] for each in runs.values())
    figures = [*rates(runs), Figure("without : with", ratio(without, with_notice), at_most=1.1)]
    all_runs = [run for each in runs.values() for run in each]
    yield Row("login-notice", lab.database, figures, all_runs)


def memory(lab: Lab) -> Iterator[Row]:
    """Look at the larger worker of a fresh service before and after many logins."""
    with ExitStack() as stack:
        service = lab.start(stack)
        accounts.fill(service, accounts.ORDINARY)
        states = [_largest_worker(service)]
        limit = lab.options.count(LOGINS)
        for _ in range(2):
            job = _job(lab, service, limit=limit, warmup=0, duration=MAX_RUN_SECONDS)
            lab.measure(service, job)
            states.append(_largest_worker(service))
    figures = [
        Figure("idle", states[0], " MB"),
        Figure(f"after {limit:,} logins", states[1], " MB", at_most=150),
        # 1 kB a login; less is the allocator's noise.
        Figure("growth in as many again", states[2] - states[1], " MB", at_most=2),
    ]
    yield Row("memory", lab.database, figures)


def refusals(lab: Lab) -> Iterator[Row]:
    """Compare what a wrong password takes for nobody, for our hashes and for imported ones.

    Without the response-time floor, which would hide it on a fast machine.
    """
    with ExitStack() as stack:
        service = lab.start(stack, GATEHOUSE_RESPONSE_FLOOR_MS="0")
        accounts.fill(service, range(1, REFUSED_ACCOUNTS + 1))
        lines = [
            {"name": f"{kind}-{n}", "address": f"{kind}-{n}@example.com", "hash": hashed}
            for kind, hashed in IMPORTED.items()
            for n in range(1, REFUSED_ACCOUNTS + 1)
        ]
        service.flask("users", "import", "-", stdin="\n".join(map(json.dumps, lines)))
        names = {"nobody": "nobody-{}", "ours": f"{accounts.USERNAME_PREFIX}{{}}"}
        names |= {kind: f"{kind}-{{}}" for kind in IMPORTED}
        spent: dict[str, list[float]] = {kind: [] for kind in names}
        for turn in range(lab.options.count(REFUSALS)):
            for kind, name in names.items():
                wrong = {
                    "identifier": name.format(turn % REFUSED_ACCOUNTS + 1),
                    "password": "wrong",
                }
                began = time.perf_counter()
                service.api.call("POST", LOGIN, wrong).require(401)
                spent[kind].append(1000 * (time.perf_counter() - began))
    medians = {kind: statistics.median(times) for kind, times in spent.items()}
    figures = [Figure(kind, value, " ms") for kind, value in medians.items()]
    times = max(medians.values()) / min(medians.values())
    yield Row(
        "refusals", lab.database, [*figures, Figure("dearest, times cheapest", times, at_most=1.3)]
    )


def _largest_worker(service: Service) -> float:
    return max(procs.memory(pid) for pid in service.workers())
