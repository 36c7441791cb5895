"""Event streams: memory, arrival, what they cost while nothing happens, requests beside them."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from time import monotonic, sleep
from typing import Any
from uuid import UUID

from redis import Redis

from app.core.clock import SystemClock
from app.core.config import Config
from app.core.keyring import Keyring
from app.core.redis import EVENTS_CHANNEL
from app.core.signed_tokens import SignedTokens
from app.serving.parent_death import before_exec
from app.sessions import access_token
from bench import accounts, procs
from bench.accounts import username
from bench.lab import Lab, Scenario, log_progress
from bench.load import Run
from bench.report import Figure, Row, Target
from bench.scenarios.requests import me_request
from bench.servers import Service

STREAMS = 10_000
TEAM_MEMBERS = 100
ROUNDS = 5
ARRIVAL_SECONDS = 15.0
SETTLE_SECONDS = 3.0
# Two rounds of signs of life and checks.
IDLE_SECONDS = 30.0
ME_CLIENTS = 8


class StreamClientProcess:
    """The process that holds the streams."""

    def __init__(self, stack: ExitStack, port: int, tokens: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.stream_clients"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=before_exec(signal.SIGKILL),
        )
        stack.callback(self._process.wait)
        stack.callback(self._process.kill)
        self._tell(json.dumps({"port": port, "tokens": tokens}))
        self.open_count = int(self._hear().removeprefix("open "))

    def report(self) -> dict[str, Any]:
        """Return the arrivals since the last report."""
        self._tell("report")
        report: dict[str, Any] = json.loads(self._hear())
        return report

    def _tell(self, line: str) -> None:
        if self._process.stdin is None:
            raise RuntimeError("the stream clients have no pipes")
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        if self._process.stdout is None:
            raise RuntimeError("the stream clients have no pipes")
        return self._process.stdout.readline()


class Publisher:
    """Publishes numbered events and works out how long each took to arrive."""

    def __init__(self, redis: Redis, clients: StreamClientProcess) -> None:
        self._redis, self._clients = redis, clients
        self._sent: dict[str, float] = {}

    def publish(self, audience: Any) -> None:
        """Publish the next event."""
        number = len(self._sent) + 1
        event = {
            "kind": "file.created",
            "workspace": {"kind": "personal"},
            "file_ids": [number],
            "folder_ids": [],
            "affected_parent_ids": [],
            "root_affected": True,
            "affects_quota": False,
            "storage_delta": None,
            "at": "2026-01-01T00:00:00Z",
        }
        text = json.dumps({"audience": audience, "event": event})
        self._sent[str(number)] = monotonic()
        self._redis.publish(EVENTS_CHANNEL, text)

    def latencies(self, audience: Any, receivers: int) -> list[float]:
        """Publish one event; return the milliseconds to each arrival, sorted."""
        self.publish(audience)
        number = str(len(self._sent))
        end, arrived = monotonic() + ARRIVAL_SECONDS, list[float]()
        while len(arrived) < receivers and monotonic() < end:
            sleep(0.2)
            arrived += self._clients.report()["arrivals"].get(number, [])
        if len(arrived) != receivers:
            raise RuntimeError(f"{len(arrived)} of {receivers} streams got the event")
        return sorted(1000 * (at - self._sent[number]) for at in arrived)

    @contextmanager
    def every_second(self, audience: Any) -> Iterator[None]:
        """Publish an event a second inside the block."""
        is_over = threading.Event()

        def run() -> None:
            while not is_over.wait(1.0):
                self.publish(audience)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def _tokens(service: Service) -> list[str]:
    """Return an access token for one session of each account."""
    clock = SystemClock()
    config = Config.from_env({"GATEHOUSE_INSTANCE": str(service.folder)})
    signed = SignedTokens(Keyring(config, clock), "access-token")
    with accounts.database(service) as (cursor, _):
        cursor.execute(
            "SELECT s.id, s.user_id FROM login_sessions AS s JOIN users AS u ON u.id = s.user_id"
            f" WHERE u.username_key LIKE '{accounts.USERNAME_PREFIX}%'"
        )
        sessions = {
            user_id: str(UUID(str(session_id))) for session_id, user_id in cursor.fetchall()
        }
    now, life = clock.now(), timedelta(hours=1)
    return [access_token.issue(signed, sid, user, now, life) for user, sid in sessions.items()]


def _make_team(service: Service, streams: int) -> int:
    """Make a team of a hundred accounts, evenly spread; return its id."""
    with accounts.database(service) as (cursor, dialect):
        cursor.execute(
            "INSERT INTO teams (name, description, created_by, storage_used, storage_quota,"
            " created_at, updated_at) SELECT 'Bench', '', id, 0, 0, created_at, created_at"
            f" FROM users WHERE username_key = '{Service.ADMIN}'"
        )
        step = streams // TEAM_MEMBERS
        names = ", ".join(f"'{username(1 + n * step)}'" for n in range(TEAM_MEMBERS))
        cursor.execute(
            "INSERT INTO team_members (team_id, user_id, role, created_at, updated_at)"
            " SELECT t.id, u.id, 'member', t.created_at, t.created_at"
            f" FROM teams AS t CROSS JOIN users AS u WHERE u.username_key IN ({names})"
        )
        for statement in dialect.after:
            if "team" not in statement:
                cursor.execute(statement)
        cursor.execute("SELECT id FROM teams")
        team_id: int = cursor.fetchone()[0]
        return team_id


def _workers_pss(service: Service) -> float:
    return sum(procs.memory(pid).pss for pid in service.workers())


def _idle_cpu(service: Service) -> float:
    """Return the share of one core, in percent, used by everything of the service."""
    before = procs.sample()
    sleep(IDLE_SECONDS)
    after = procs.sample()
    used = sum(after.tree_seconds(p) - before.tree_seconds(p) for p in service.parts.values())
    return 100 * used / (after.at - before.at)


def _streams(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    streams = lab.options.count(STREAMS)
    with lab.fresh(database) as service, ExitStack() as stack:
        accounts.fill(service, range(1, streams + 1), 1)
        team_id = _make_team(service, streams)
        job = lab.job(service, ME_CLIENTS, [me_request(service, username(1))])
        before = lab.measure(service, job)
        pss = _workers_pss(service)
        clients = StreamClientProcess(stack, service.port, _tokens(service))
        log_progress(f"{clients.open_count} streams are open")
        sleep(SETTLE_SECONDS)
        grown = (_workers_pss(service) - pss) * 1024 / max(1, clients.open_count)
        redis = stack.enter_context(Redis.from_url(service.redis_url))
        publisher = Publisher(redis, clients)
        yield Row(
            f"{scenario.name}, open",
            database,
            streams,
            figures=[
                scenario.figure("held", 100 * clients.open_count / streams, "%"),
                scenario.figure("KiB a stream", grown),
                scenario.figure("idle CPU", _idle_cpu(service), "%"),
            ],
        )
        everybody = _rounds(publisher, "any", clients.open_count)
        yield Row(
            f"{scenario.name}, event to all",
            database,
            streams,
            figures=_tail(scenario, everybody, "all"),
        )
        team = _rounds(publisher, {"team": team_id}, TEAM_MEMBERS)
        yield Row(
            f"{scenario.name}, event to a team",
            database,
            streams,
            figures=_tail(scenario, team, "team"),
        )
        beside = lab.measure(service, job)
        with publisher.every_second("any"):
            meanwhile = lab.measure(service, job)
        yield from _me(scenario, database, before, beside, meanwhile)
        lost = clients.report()["lost"]
        if lost:
            raise RuntimeError(f"{lost} streams were lost")


def _rounds(publisher: Publisher, audience: Any, receivers: int) -> list[float]:
    publisher.latencies(audience, receivers)  # the first one plans the queries
    latencies = []
    for _ in range(ROUNDS):
        sleep(0.5)
        latencies += publisher.latencies(audience, receivers)
    return sorted(latencies)


def _tail(scenario: Scenario, latencies: list[float], name: str) -> list[Figure]:
    return [
        scenario.figure(f"{name} p{share:g}", _percentile(latencies, share), "ms")
        for share in (50, 99, 100)
    ]


def _percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share / 100))]


def _me(
    scenario: Scenario, database: str, before: Run, beside: Run, meanwhile: Run
) -> Iterator[Row]:
    named = {"no streams": before, "idle streams": beside, "an event a second": meanwhile}
    for name, run in named.items():
        figures = []
        if run is not before:
            ratio = run.percentile(0.99) / before.percentile(0.99)
            figures = [scenario.figure(f"me p99, {name}", ratio)]
        yield Row(f"me, {name}", database, ME_CLIENTS, [run], figures)


SCENARIOS = (
    Scenario(
        "streams",
        f"{STREAMS:,} event streams: memory, idle CPU, arrival, GET /auth/me beside them",
        _streams,
        {
            "held": Target(at_least=100),
            "KiB a stream": Target(at_most=20),
            "idle CPU": Target(at_most=10),
            "all p50": Target(at_most=200),
            "all p99": Target(at_most=700),
            "team p99": Target(at_most=50),
            "me p99, an event a second": Target(at_most=2),
        },
        is_opt_in=True,
        runs_last=True,
    ),
)
