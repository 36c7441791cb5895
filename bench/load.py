"""Runs the load generator against one server and evaluates its results."""

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Self

from bench import procs

# A new interpreter: the load generator shares no memory with this process.
SPAWN = multiprocessing.get_context("spawn")


class Failed(Exception):
    """A server gave a wrong answer or none, so that its figures are worth nothing."""


@dataclass(frozen=True)
class Request:
    """One request to send, and what its answer must contain."""

    raw: str
    status: int = 200
    expect: str = ""


def render(method: str, path: str, body: Any = None, **headers: str) -> str:
    """Return a raw HTTP request as text."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "User-Agent: bench"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    content = "" if body is None else json.dumps(body)
    if content:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    elif method != "GET":
        lines.append("Content-Length: 0")
    return "\r\n".join([*lines, "", content])


@dataclass(frozen=True)
class Job:
    """The job of the load generator; the requests are dealt to all clients in turn.

    With `chains` each client has its own cookies, put into `template` at @@COOKIES@@ and renewed by
    every answer; with `chained_by` "body" it has one field of the answers' bodies instead, put into
    the request's body at @@TOKEN@@. `limit` ends the run after that many requests; None: no limit.
    """

    port: int
    clients: int
    duration: float
    requests: Sequence[Request] = ()
    template: Request | None = None
    chains: Sequence[dict[str, str]] | None = None
    chained_by: str = "cookies"
    limit: int | None = None
    warmup: float = 0.4


@dataclass
class Run:
    """The results of one run of the load generator; latencies in ms, sorted."""

    counted: int
    seconds: float
    failed: int
    first_failure: str
    latencies: list[float] = field(repr=False)
    foreign_cores: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Correct answers per second."""
        return self.counted / self.seconds

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds of the server and its database per correct answer."""
        return 1000 * self.cpu_seconds / max(1, self.counted)

    def percentile(self, share: float) -> float:
        """Return the latency (ms) that `share` of all answers stayed below; NaN without answers."""
        known = self.latencies
        return known[min(len(known) - 1, int(share * len(known)))] if known else float("nan")


class Load:
    """A load generator at work in a process of its own (bench/client.py)."""

    def __init__(self, job: Job) -> None:
        self._pipe, other_end = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_generate, args=(job, other_end), daemon=True)
        self._process.start()
        other_end.close()

    def next(self) -> Any:
        """Wait for what it says next: that the measured window begins, that it ends, the Run."""
        return self._pipe.recv()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _generate(job: Job, pipe: Connection) -> None:
    from bench.client import generate  # which imports this module, and gevent

    generate(job, pipe)


def run(job: Job, parts: Sequence[int]) -> Run:
    """Run `job`; the CPU is that of the process trees `parts` within the measured window.

    Raises: Failed.
    """
    with Load(job) as load:
        load.next()
        before = procs.sample()
        load.next()
        after = procs.sample()
        seen: Run = load.next()
    if seen.failed:
        raise Failed(f"{seen.failed} requests failed, the first: {seen.first_failure}")
    seen.foreign_cores = procs.foreign_load(before, after)
    seen.cpu_seconds = sum(after.tree_seconds(pid) - before.tree_seconds(pid) for pid in parts)
    return seen


@contextmanager
def background(job: Job) -> Iterator[None]:
    """Keep `job` running inside the block."""
    with Load(job) as load:
        load.next()
        yield
