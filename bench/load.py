"""Runs the load generator against one server and evaluates its results."""

import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from app.serving.parent_death import before_exec
from bench import procs


@dataclass(frozen=True)
class Request:
    """One request to send, and what its answer must contain."""

    label: str
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
    host: str = "127.0.0.1"


@dataclass
class Run:
    """The results of one run of the load generator; latencies in ms, sorted, by label."""

    counted: int
    sent: int
    seconds: float
    failed: int
    first_failure: str
    latencies: dict[str, list[float]] = field(repr=False)
    client_cores: float = 0.0
    foreign_cores: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Correct answers per second."""
        return self.counted / self.seconds

    def cpu_ms(self, part: str) -> float:
        """CPU milliseconds that `part` of the service used per correct answer."""
        return 1000 * self.cpu.get(part, 0.0) / max(1, self.counted)

    def percentile(self, share: float) -> float:
        """Return the latency (ms) that `share` of all answers stayed below; NaN without answers."""
        merged = sorted(x for values in self.latencies.values() for x in values)
        return merged[min(len(merged) - 1, int(share * len(merged)))] if merged else float("nan")

    def summary(self) -> dict[str, Any]:
        """Return the figures worth storing."""
        return {
            "rate": self.rate,
            "p50_ms": self.percentile(0.5),
            "p99_ms": self.percentile(0.99),
            "max_ms": self.percentile(1.0),
            "counted": self.counted,
            "failed": self.failed,
            "first_failure": self.first_failure,
            "client_cores": self.client_cores,
            "foreign_cores": self.foreign_cores,
            "cpu_ms": {part: self.cpu_ms(part) for part in self.cpu},
        }


class Client:
    """One process of the load generator."""

    def __init__(self, job: Job) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.client"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=before_exec(signal.SIGKILL),
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the load generator has no pipes")
        self._output = self._process.stdout
        json.dump(asdict(job), self._process.stdin)
        self._process.stdin.close()

    def wait_for(self, word: str) -> None:
        """Wait until the generator reports that the measured window begins or ends."""
        line = self._output.readline().strip()
        if line != word:
            raise RuntimeError(f"the load generator said {line!r} instead of {word!r}")

    def result(self) -> Run:
        """Wait for the end and return the results."""
        raw = json.loads(self._output.readline())
        self._process.wait()
        latencies = {k: sorted(us / 1000 for us in v) for k, v in raw["latencies"].items()}
        return Run(
            counted=raw["counted"],
            sent=raw["sent"],
            seconds=raw["seconds"],
            failed=sum(raw["failures"].values()),
            first_failure=raw["first_failure"],
            latencies=latencies,
            client_cores=raw["cpu"] / max(raw["seconds"], 1e-9),
        )

    def stop(self) -> None:
        """Ask for the end of the window."""
        self._process.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._output.close()


def run(job: Job, parts: dict[str, int]) -> Run:
    """Run `job` and charge the CPU of the measured window to `parts` (name to root process)."""
    with Client(job) as client:
        client.wait_for("begin")
        before = procs.sample()
        client.wait_for("end")
        after = procs.sample()
        seen = client.result()
    seen.foreign_cores = procs.foreign_load(before, after)
    seen.cpu = {n: after.tree_seconds(pid) - before.tree_seconds(pid) for n, pid in parts.items()}
    return seen


@contextmanager
def background(job: Job) -> Iterator[list[Run]]:
    """Keep `job` running inside the block; its result is in the yielded list afterwards."""
    results: list[Run] = []
    with Client(job) as client:
        client.wait_for("begin")
        yield results
        client.stop()
        client.wait_for("end")
        results.append(client.result())


def median(values: Sequence[float]) -> float:
    """Return the median; NaN of an empty sequence."""
    return statistics.median(values) if values else float("nan")
