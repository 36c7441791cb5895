"""What scenarios share: options, running servers, measured runs."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from bench import accounts, load, procs
from bench.load import Job, Run
from bench.peers import install
from bench.peers.servers import PEERS
from bench.report import Row
from bench.servers import NotStarted, Postgres, Running, Service

T = TypeVar("T")
OURS = "Gatehouse"
CLIENTS = 16


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    duration: float
    repeats: int
    noise: float
    wait: float
    with_peers: bool
    divisor: int

    def count(self, usual: int) -> int:
        """Return how many of something to use: fewer with --quick."""
        return max(1, usual // self.divisor)


@dataclass
class Lab:
    """Starts servers on one database at first use and keeps them until its stack is closed."""

    options: Options
    database: str
    stack: ExitStack
    missing: dict[str, str] = field(default_factory=dict)
    _peers: dict[str, Running] = field(default_factory=dict)
    _databases: int = 0

    @cached_property
    def postgres(self) -> Postgres | None:
        return Postgres(self.stack) if self.database == "postgres" else None

    @cached_property
    def service(self) -> Service:
        """The service with a thousand accounts."""
        service = self.start(self.stack)
        accounts.fill(service, accounts.ORDINARY)
        return service

    def start(self, stack: ExitStack, **env: str) -> Service:
        """Start a service that lives as long as `stack`."""
        return Service(stack, self.postgres, self._next_database(), **env)

    def peer(self, name: str) -> Running | None:
        """Return a peer by its name in `PEERS`; None, noted in `missing`, if it cannot run here."""
        if not self.options.with_peers or name in self.missing:
            return None
        if name not in self._peers:
            try:
                database = self._next_database()
                self._peers[name] = PEERS[name].start(self.stack, self.postgres, database)
            except (install.Missing, NotStarted) as problem:
                self.missing[name] = str(problem)
                return None
        return self._peers[name]

    def _next_database(self) -> str:
        self._databases += 1
        return f"bench{self._databases}"

    def job(self, server: Running, clients: int = CLIENTS, **fields: object) -> Job:
        """Return a job of the configured duration."""
        return Job(server.port, clients, **{"duration": self.options.duration, **fields})  # type: ignore[arg-type]

    def measure(self, server: Running, job: Job) -> Run:
        """Run `job` against `server` once the machine is quiet."""
        procs.wait_until_quiet(server.server.pid, self.options.noise, self.options.wait)
        return load.run(job, server.parts)

    def in_turn(self, work: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
        """Do each kind of work in turn, again and again: what is compared is close in time."""
        results: dict[str, list[T]] = {name: [] for name in work}
        for _ in range(self.options.repeats):
            for name, do in work.items():
                results[name].append(do())
        return results


Measure = Callable[[Lab], Iterator[Row]]


def log(text: str) -> None:
    """Report progress on standard error; standard output is for the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
