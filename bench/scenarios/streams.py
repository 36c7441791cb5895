"""Event streams: whether they are held, their memory, and how soon an event reaches them all."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic, sleep

from redis import Redis

from bench import accounts, procs
from bench.accounts import username
from bench.lab import Lab, log
from bench.load import SPAWN
from bench.report import Figure, Row
from bench.scenarios.growth import WITHOUT_HASH
from bench.servers import Service
from bench.stream_clients import hold

STREAMS = 10_000
CHANNEL = "gatehouse:storage_events"
ROUNDS = 5
ARRIVAL_SECONDS = 15.0
SETTLE_SECONDS = 3.0


class Streams:
    """The process that holds the streams (bench/stream_clients.py)."""

    def __init__(self, stack: ExitStack, port: int, tokens: list[str]) -> None:
        self._pipe, other_end = SPAWN.Pipe()
        process = SPAWN.Process(target=hold, args=(port, tokens, other_end), daemon=True)
        process.start()
        stack.callback(process.kill)
        other_end.close()
        self.open_count: int = self._pipe.recv()

    def report(self) -> tuple[int, dict[int, list[float]]]:
        """Return how many streams were lost, and the arrivals since the last report."""
        self._pipe.send("report")
        report: tuple[int, dict[int, list[float]]] = self._pipe.recv()
        return report


def streams(lab: Lab) -> Iterator[Row]:
    """Open the streams, one account each, and send them numbered events."""
    count = lab.options.count(STREAMS)
    with ExitStack() as stack:
        service = lab.start(stack, **WITHOUT_HASH)
        accounts.fill(service, range(1, count + 1))
        cookies = service.api.login_all(username(1 + n) for n in range(count))
        tokens = [each["service_access"] for each in cookies]
        before = _workers_mb(service)
        clients = Streams(stack, service.port, tokens)
        log(f"{clients.open_count} streams are open")
        sleep(SETTLE_SECONDS)
        grown = (_workers_mb(service) - before) * 1024 / max(1, clients.open_count)
        redis = stack.enter_context(Redis.from_url(service.redis_url))
        latencies = []
        for number in range(ROUNDS + 1):
            arrived = _latencies(redis, clients, number)
            latencies += arrived if number else []  # the first one plans the queries
            sleep(0.5)
        held = clients.open_count - clients.report()[0]
    latencies.sort()
    figures = [
        Figure("held", 100 * held / count, "%", at_least=100),
        Figure("memory of each", grown, " KiB", at_most=24),
        Figure("an event to all, p50", latencies[len(latencies) // 2], " ms"),
        Figure("an event to all, p99", latencies[len(latencies) * 99 // 100], " ms", at_most=1000),
    ]
    yield Row(f"{count:,} streams", lab.database, figures)


def _latencies(redis: Redis, clients: Streams, number: int) -> list[float]:
    """Publish one event to everybody; return the milliseconds to each arrival."""
    event = {
        "kind": "file.created",
        "workspace": {"kind": "personal"},
        "file_ids": [number + 1],
        "folder_ids": [],
        "affected_parent_ids": [],
        "root_affected": True,
        "affects_quota": False,
        "storage_delta": None,
        "at": "2026-01-01T00:00:00Z",
    }
    sent = monotonic()
    redis.publish(CHANNEL, json.dumps({"audience": "any", "event": event}))
    arrived: list[float] = []
    while len(arrived) < clients.open_count and monotonic() < sent + ARRIVAL_SECONDS:
        sleep(0.2)
        arrived += clients.report()[1].get(number + 1, [])
    if len(arrived) != clients.open_count:
        raise RuntimeError(f"{len(arrived)} of {clients.open_count} streams got the event")
    return [1000 * (at - sent) for at in arrived]


def _workers_mb(service: Service) -> float:
    return sum(procs.memory(pid) for pid in service.workers())
