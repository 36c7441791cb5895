"""The environment of a scenario: options, running servers, measured runs."""

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from bench import accounts, load, procs
from bench.load import Job, Request, Run, render
from bench.peers.servers import Peer
from bench.report import Figure, Row, Target
from bench.servers import Bare, Least, Postgres, Running, Service

BARE_REQUEST = Request("bare", render("GET", "/"), 200, '"hello"')


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    duration: float
    clients: tuple[int, ...]
    repeats: int
    noise: float
    wait: float
    scale: int
    divisor: int = 1
    nginx: bool = False

    def count(self, usual: int) -> int:
        """Return how many of something to use: fewer with --quick."""
        return max(1, usual // self.divisor)


@dataclass
class Lab:
    """Starts servers on first use and keeps them running until its stack is closed."""

    options: Options
    stack: ExitStack
    _services: dict[str, Service] = field(default_factory=dict)
    _least: dict[str, Least] = field(default_factory=dict)
    _databases: int = 0

    @cached_property
    def bare(self) -> Bare:
        """The bare Flask route."""
        return Bare(self.stack, nginx=self.options.nginx)

    @cached_property
    def postgres(self) -> Postgres:
        """The PostgreSQL cluster, shared by all services that use one."""
        return Postgres(self.stack)

    def service(self, database: str) -> Service:
        """Return the service on `database`, filled with the accounts of `bench.accounts`."""
        if database not in self._services:
            self._services[database] = service = self.start(self.stack, database)
            accounts.fill(service, accounts.EVERYONE)
            accounts.disable(service, accounts.DISABLED)
        return self._services[database]

    def start(self, stack: ExitStack, database: str, **env: str) -> Service:
        """Start a service that lives as long as `stack`."""
        self._databases += 1
        postgres = self.postgres if database == "postgres" else None
        name, nginx = f"bench{self._databases}", self.options.nginx
        return Service(stack, postgres, name, nginx=nginx, **env)

    def least(self, database: str) -> Least:
        """Return the application of bench/least.py on `database`: the least a request can cost."""
        if database not in self._least:
            self._databases += 1
            postgres = self.postgres if database == "postgres" else None
            self._least[database] = Least(self.stack, postgres, f"bench{self._databases}")
        return self._least[database]

    def forget_dead(self) -> None:
        """Forget servers that have ended, so that they are started again when next used."""
        for servers in (self._services, self._least):
            for database in [name for name, server in servers.items() if not server.is_running]:
                del servers[database]
        if "bare" in self.__dict__ and not self.bare.is_running:
            del self.bare
        if "postgres" in self.__dict__ and not self.postgres.is_running:
            del self.postgres
            self._services.pop("postgres", None)
            self._least.pop("postgres", None)

    def start_peer(self, stack: ExitStack, peer: Peer, database: str) -> Running:
        """Start a peer that lives as long as `stack`."""
        self._databases += 1
        postgres = self.postgres if database == "postgres" else None
        return peer.start(stack, postgres, f"bench{self._databases}")

    @contextmanager
    def fresh(self, database: str, **env: str) -> Iterator[Service]:
        """Run a separate service for the duration of the block."""
        with ExitStack() as stack:
            yield self.start(stack, database, **env)

    def measure(self, server: Running, job: Job) -> Run:
        """Run `job` against `server` once the machine is quiet."""
        procs.wait_until_quiet(server.server.pid, self.options.noise, self.options.wait)
        run = load.run(job, server.parts)
        if run.failed:
            log_progress(
                f"{run.failed} failed, the first: {run.first_failure!r}; the server's log ends:"
            )
            log_progress(server.server.log.read_text()[-2000:])
        return run

    def job(self, server: Running, clients: int, requests: Sequence[Request]) -> Job:
        """Return a job of the configured duration."""
        return Job(server.port, clients, self.options.duration, requests)

    def measure_bare(self, clients: int) -> Run:
        """Measure the bare route."""
        return self.measure(self.bare, self.job(self.bare, clients, [BARE_REQUEST]))

    def pairs(
        self, first: Callable[[], Run], second: Callable[[], Run]
    ) -> tuple[list[Run], list[Run]]:
        """Alternate two measurements, so that a ratio compares runs that are adjacent in time."""
        rounds = [(first(), second()) for _ in range(self.options.repeats)]
        return [a for a, _ in rounds], [b for _, b in rounds]


@dataclass(frozen=True)
class Scenario:
    """Something to measure: how to do so on a database, and its targets by figure name."""

    name: str
    summary: str
    measure: Callable[["Lab", str, "Scenario"], Iterable[Row]]
    targets: dict[str, Target] = field(default_factory=dict)
    databases: tuple[str, ...] = ("sqlite", "postgres")
    is_opt_in: bool = False
    runs_last: bool = False

    def figure(self, name: str, value: float, unit: str = "") -> Figure:
        """Return a figure with this scenario's target for it."""
        return Figure(name, value, self.targets.get(name), unit)

    def ratio(self, name: str, over: Iterable[float], under: Iterable[float]) -> Figure:
        """Return the median of the ratios of paired runs."""
        ratios = [a / b if b else float("nan") for a, b in zip(over, under, strict=True)]
        return self.figure(name, statistics.median(ratios))


@dataclass(frozen=True)
class Group:
    """The scenarios of one area."""

    title: str
    scenarios: tuple[Scenario, ...]


def log_progress(text: str) -> None:
    """Report progress on standard error; standard output is for the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def log_row(row: Row) -> None:
    """Report the result of one row as soon as it is there."""
    rate = f"{row.of(lambda run: run.rate):9.1f}/s" if row.runs else ""
    tail = f"p99 {row.of(lambda run: run.percentile(0.99)):8.2f} ms" if row.runs else ""
    figures = "; ".join(f"{figure} [{figure.verdict}]" for figure in row.figures)
    clients = f"c={row.clients}"
    point = f"{row.scenario:24} {row.database:9} {clients:6}"
    log_progress(f"{point} {rate} {tail} failed {row.failed}  {figures}")
