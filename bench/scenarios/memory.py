"""Memory of the workers before and after many logins."""

from collections.abc import Iterator
from dataclasses import replace

from bench import accounts, procs
from bench.lab import Lab, Scenario
from bench.report import Row, Target
from bench.scenarios.logins import MAX_RUN_SECONDS, SATURATING_CLIENTS, login_job
from bench.servers import Service

LOGINS = 2000


def _largest(service: Service) -> procs.Memory:
    """Return the memory of the worker that has most."""
    return max((procs.memory(pid) for pid in service.workers()), key=lambda memory: memory.pss)


def _memory(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    with lab.fresh(database) as service:
        accounts.fill(service, accounts.ORDINARY)
        states, runs = [_largest(service)], []
        for _ in range(2):
            job = login_job(lab, service, SATURATING_CLIENTS, accounts.ORDINARY)
            job = replace(job, limit=lab.options.count(LOGINS), warmup=0, duration=MAX_RUN_SECONDS)
            runs.append(lab.measure(service, job))
            states.append(_largest(service))
    names = "idle", "after 2,000 logins", "after 4,000 logins"
    figures = [
        scenario.figure(name, state.pss, "MB") for name, state in zip(names, states, strict=True)
    ]
    figures += [
        scenario.figure("growth in the second 2,000", states[2].pss - states[1].pss, "MB"),
        *(scenario.figure(f"USS {n}", s.uss, "MB") for n, s in zip(names, states, strict=True)),
    ]
    yield Row(scenario.name, database, SATURATING_CLIENTS, runs, figures)


SCENARIOS = (
    Scenario(
        "memory",
        "PSS of the larger worker: idle, after 2,000 and after 4,000 logins",
        _memory,
        {
            "idle": Target(at_most=120),
            "after 2,000 logins": Target(at_most=180),
            # 1 kB a login; less is the allocator's noise.
            "growth in the second 2,000": Target(at_most=2),
        },
    ),
)
