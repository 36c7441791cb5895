"""Accounts of other services: what bringing them in costs, and their first logins."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from time import perf_counter
from typing import NamedTuple

from bench import load
from bench.api import LOGIN
from bench.foreign_hashes import VECTORS, Vector
from bench.lab import CLIENTS, Lab, log
from bench.load import Request, Run, render
from bench.report import Figure, Row
from bench.scenarios.growth import WITHOUT_HASH
from bench.servers import ROOT, Service

ACCOUNTS = 10_000
# One of each kind, the first, or it would take too long.
FORMATS = {vector.kind: vector for vector in reversed(VECTORS.values())}
# Of logins with each: fewer than all of them, but for the cheapest hashes.
MAX_SECONDS = 20


class Imported(NamedTuple):
    """What one `flask users import` took."""

    seconds: float
    megabytes: float


def imports(lab: Lab) -> Iterator[Row]:
    """Import accounts of each format, then sign in as many as there is time for.

    The first login of each makes a hash of ours.
    """
    with ExitStack() as stack:
        service = lab.start(stack, **WITHOUT_HASH)
        for number, (name, vector) in enumerate(FORMATS.items()):
            log(f"importing accounts of {name}")
            names = [f"import{number}-{n}" for n in range(lab.options.count(ACCOUNTS))]
            brought = _import(service, vector, names)
            run = _first_logins(lab, service, vector, names)
            figures = [
                Figure("accounts imported", len(names) / brought.seconds, "/s"),
                Figure("memory of the command", brought.megabytes, " MB", at_most=200),
                Figure("first logins", run.rate, "/s"),
            ]
            yield Row(f"import: {name}", lab.database, figures, [run])


def _import(service: Service, vector: Vector, names: list[str]) -> Imported:
    lines = ({"name": name, "address": f"{name}@example.com", **vector.line} for name in names)
    file = service.folder / "import.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    command = [sys.executable, "-m", "flask", "--app", "wsgi", "users", "import", str(file)]
    began = perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | service.settings, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise load.Failed(f"`flask users import` ended with {os.waitstatus_to_exitcode(status)}")
    return Imported(perf_counter() - began, usage.ru_maxrss / 1024)


def _first_logins(lab: Lab, service: Service, vector: Vector, names: list[str]) -> Run:
    bodies = ({"identifier": name, "password": vector.password} for name in names)
    requests = [Request(render("POST", LOGIN, body), 200, '"authenticated"') for body in bodies]
    limits = {"limit": len(names), "warmup": 0, "duration": MAX_SECONDS}
    return load.run(lab.job(service, CLIENTS, requests=requests, **limits), service.parts)
