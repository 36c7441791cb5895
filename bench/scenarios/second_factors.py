"""The second step of a login beside the bare Flask route: codes of an app, and recovery codes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from statistics import median

from bench import accounts, procs
from bench.lab import Lab, Scenario
from bench.load import Job, Request, Run, render
from bench.report import Row, Target
from bench.scenarios.requests import compared
from bench.servers import Service

VERIFY = "/api/v1/auth/mfa/challenge/verify"
# More waiting logins than a run can finish: each is good once, and so is a code of an account.
LOGINS_PER_SECOND = 3000
RECOVERY_LOGINS_PER_SECOND = 1200
CODES = 10
WARMUP_SECONDS = 0.4


def _job(lab: Lab, service: Service, clients: int, method: str) -> Job:
    """Return the second steps of logins that wait, each of an account of its own."""
    codes = CODES if method == "recovery_code" else 0
    answer = json.loads(service.python("-m", "bench.pending_mfa", str(codes)))
    requests = [
        Request(
            method,
            render("POST", VERIFY, {"flow_token": token, "method": method, "code": answer[method]}),
            200,
            '"authenticated"',
        )
        for token in answer["tokens"]
    ]
    job = lab.job(service, clients, requests)
    return replace(job, limit=len(requests), warmup=WARMUP_SECONDS)


def _verify(
    lab: Lab, database: str, scenario: Scenario, *, method: str, per_second: int
) -> Iterator[Row]:

    def target(service: Service, clients: int) -> Run:
        return lab.measure(service, _job(lab, service, clients, method))

    with lab.fresh(database) as service:
        seconds = WARMUP_SECONDS + lab.options.duration
        accounts.fill(service, range(1, int(per_second * seconds) + 1))
        for clients in lab.options.clients:
            bare, runs = lab.pairs(
                partial(lab.measure_bare, clients), partial(target, service, clients)
            )
            yield Row(f"bare (for {scenario.name})", "-", clients, bare)
            row = compared(scenario, database, clients, bare, runs)
            cost = scenario.figure("per request", row.of(lambda run: run.cpu_ms("server")), "ms")
            yield replace(row, figures=[*row.figures, cost])


def _check(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    """Measure the check alone, in a process of its own, with one stored code and with ten."""
    with lab.fresh(database) as service:
        accounts.fill(service, range(1, 2))
        for codes in (1, CODES):
            service.python("-m", "bench.pending_mfa", str(codes))
            found = [_cpu_of_check(lab, service, codes) for _ in range(lab.options.repeats)]
            figure = scenario.figure("CPU per check", median(found), "ms")
            yield Row(f"{scenario.name}, {codes} stored", database, figures=[figure])


def _cpu_of_check(lab: Lab, service: Service, codes: int) -> float:
    procs.wait_until_quiet(service.server.pid, lab.options.noise, lab.options.wait)
    cpu_ms: float = json.loads(service.python("-m", "bench.recovery_check", str(codes)))["cpu_ms"]
    return cpu_ms


SCENARIOS = (
    Scenario(
        "totp",
        "a login's second step with a code of the app, beside the bare route",
        partial(_verify, method="totp", per_second=LOGINS_PER_SECOND),
        {"rate": Target(at_least=0.3)},
    ),
    Scenario(
        "recovery-code",
        "the same with one of ten recovery codes",
        partial(_verify, method="recovery_code", per_second=RECOVERY_LOGINS_PER_SECOND),
    ),
    Scenario(
        "recovery-code-check",
        "the check of a recovery code alone, its read included, with 1 and with 10 stored",
        _check,
        {"CPU per check": Target(at_most=3)},
    ),
)
