"""Avatars: an upload beside the bare image library, requests beside renders, memory, sending."""

import http.client
import io
import statistics
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from time import perf_counter, process_time

from PIL import Image

from app.avatars import files, rendering
from bench import accounts, procs
from bench.accounts import username
from bench.api import Unexpected, cookie_header
from bench.lab import Lab, Scenario
from bench.load import Job, Request, render
from bench.report import Row, Target
from bench.scenarios.requests import beside_bare, me_request
from bench.servers import Service
from tests.support import images

UPLOAD = "/api/v1/auth/profile/avatar/upload"
AVATAR = "/api/v1/auth/profile/avatar/512"
UPLOADS = 15
CLIENTS = 16
# Three clients keep two renders running: one of them is always receiving or publishing.
UPLOADERS = 3
# So that both workers have two renders at once, again and again.
UPLOADERS_FOR_MEMORY = 8
UPLOADS_FOR_MEMORY = 48


def _source() -> bytes:
    return images.encoded(images.photo(1024))


class Uploader:
    """One account that uploads over a connection kept open."""

    def __init__(self, service: Service, user: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        self._headers = {
            **images.headers(),
            "Cookie": cookie_header(service.api.login(user)),
        }

    def upload(self, body: bytes) -> None:
        """Upload and insist that it was published."""
        self._connection.request("POST", UPLOAD, body, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200 or b'"applied":true' not in content:
            raise Unexpected(f"status {answer.status}: {content[:300]!r}")


def _pipeline(source: bytes) -> None:
    """Do what any service must: decode, resize twice, encode twice, as ours does."""
    with Image.open(io.BytesIO(source)) as opened:
        image = opened.convert("RGB")
    for size in files.SIZES:
        resized = image.resize((size, size), Image.Resampling.BILINEAR)
        resized.save(io.BytesIO(), "WEBP", quality=rendering.QUALITY, method=rendering.METHOD)


def _upload(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    service = lab.service(database)
    source = _source()
    body = images.multipart(source)
    uploader = Uploader(service, username(1))
    uploader.upload(body)
    _pipeline(source)
    bare: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    for _ in range(lab.options.count(UPLOADS)):
        began, cpu = perf_counter(), process_time()
        _pipeline(source)
        bare.append((perf_counter() - began, process_time() - cpu))
        before, began = procs.sample(), perf_counter()
        uploader.upload(body)
        seconds, after = perf_counter() - began, procs.sample()
        pid = service.server.pid
        ours.append((seconds, after.tree_seconds(pid) - before.tree_seconds(pid)))
    times = [mine[0] / theirs[0] for mine, theirs in zip(ours, bare, strict=True)]
    # The kernel counts in ticks of 10 ms: only the sum means something.
    cpu_ratio = sum(cpu for _, cpu in ours) / sum(cpu for _, cpu in bare)
    figures = [
        scenario.figure("time", statistics.median(times)),
        scenario.figure("CPU", cpu_ratio),
        scenario.figure("pipeline", 1000 * statistics.median(s for s, _ in bare), "ms"),
        scenario.figure("upload", 1000 * statistics.median(s for s, _ in ours), "ms"),
    ]
    yield Row(scenario.name, database, 1, [], figures)


class Uploading:
    """So many clients that upload again and again inside the block; `done` counts the uploads."""

    def __init__(self, service: Service, number: int) -> None:
        self.done = 0
        self._body, self._stop = images.multipart(_source()), threading.Event()
        self._failures: list[Exception] = []
        uploaders = [Uploader(service, username(10 + n)) for n in range(number)]
        self._threads = [threading.Thread(target=self._run, args=(one,)) for one in uploaders]

    def _run(self, uploader: Uploader) -> None:
        try:
            while not self._stop.is_set():
                uploader.upload(self._body)
                self.done += 1
        except (OSError, Unexpected, http.client.HTTPException) as error:
            self._failures.append(error)
            self._stop.set()

    def goes_on(self, *, until: int) -> bool:
        """Wait a moment; tell whether there are fewer uploads yet, and none failed."""
        return not self._stop.wait(0.005) and self.done < until

    def __enter__(self) -> "Uploading":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise Unexpected(str(self._failures[0]))


def _me_during_renders(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    service = lab.service(database)
    job = lab.job(service, CLIENTS, [me_request(service, username(2))])
    idle, busy, rendered = [], [], 0
    for _ in range(lab.options.repeats):
        idle.append(lab.measure(service, job))
        with Uploading(service, UPLOADERS) as uploading:
            busy.append(lab.measure(service, job))
        rendered += uploading.done
    tails = [r.percentile(0.99) for r in busy], [r.percentile(0.99) for r in idle]
    figures = [
        scenario.ratio("p99 over idle", *tails),
        scenario.figure("uploads meanwhile", rendered),
    ]
    yield Row("me (idle)", database, CLIENTS, idle)
    yield Row(scenario.name, database, CLIENTS, busy, figures)


def _memory(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    with lab.fresh(database) as service:
        accounts.fill(service, accounts.ORDINARY)
        for _ in range(UPLOADERS_FOR_MEMORY):
            service.api.login(username(1))  # what every first request loads is loaded
        before = _memory_by_worker(service.workers())
        peaks = dict.fromkeys(before, 0.0)
        with Uploading(service, UPLOADERS_FOR_MEMORY) as uploading:
            while uploading.goes_on(until=lab.options.count(UPLOADS_FOR_MEMORY)):
                now = _memory_by_worker(before)
                peaks = {pid: max(peaks[pid], now[pid] - idle) for pid, idle in before.items()}
        now = _memory_by_worker(before)
        kept = [now[pid] - idle for pid, idle in before.items()]
    figures = [
        scenario.figure("peak of two renders", max(peaks.values()), "MB"),
        scenario.figure("kept afterwards", max(kept), "MB"),
    ]
    yield Row(scenario.name, database, UPLOADERS_FOR_MEMORY, [], figures)


def _memory_by_worker(workers: Iterable[int]) -> dict[int, float]:
    """Return the memory of each worker with the processes that render for it, in MB."""
    processes = procs.sample()
    return {worker: _memory_of(processes.tree(worker)) for worker in workers}


def _memory_of(pids: Iterable[int]) -> float:
    total = 0.0
    for pid in pids:
        # One that has just ended needs none.
        with suppress(FileNotFoundError, ProcessLookupError, KeyError):
            total += procs.memory(pid).pss
    return total


def _get_job(lab: Lab, service: Service, clients: int) -> Job:
    user = username(3)
    Uploader(service, user).upload(images.multipart(_source()))
    cookie = "service_access=" + service.api.login(user)["service_access"]
    raw = render("GET", AVATAR, Cookie=cookie)
    return lab.job(service, clients, [Request("avatar", raw, 200, "WEBP")])


SCENARIOS = (
    Scenario(
        "avatar-upload",
        "a 1024x1024 PNG from upload to published, beside the bare image library",
        _upload,
        {"time": Target(at_most=1.25)},
    ),
    Scenario(
        "avatar-renders",
        "GET /auth/me while two avatars are always being rendered",
        _me_during_renders,
        {"p99 over idle": Target(at_most=3)},
    ),
    Scenario(
        "avatar-memory",
        "memory of a worker while it renders two avatars",
        _memory,
        {"peak of two renders": Target(at_most=64)},
    ),
    Scenario(
        "avatar-get",
        "GET of a photograph of 512 pixels, beside the bare route",
        beside_bare(_get_job),
        {"rate": Target(at_least=0.35)},
    ),
)
