"""Prometheus metrics, aggregated over all workers."""

import os
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from pathlib import Path

from flask import Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
    multiprocess,
)
from prometheus_client.registry import Collector
from werkzeug.routing import Rule

REQUESTS = Counter("http_requests_total", "Requests answered.", ["method", "route", "status"])
DURATIONS = Histogram(
    "http_request_duration_seconds",
    "Time from the request's arrival in the worker to the beginning of its answer.",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
QUERIES = Counter("db_queries_total", "Statements sent to the database.")
AUTH_EVENTS = Counter(
    "auth_events_total", "Outcomes of authentication.", ["action", "status", "reason"]
)
TOKEN_REQUESTS = Counter(
    "gatehouse_token_requests_total",
    "Requests with an access token, by the scope that opens the route.",
    ["scope", "outcome"],
)
LEAK_CHECKS = Counter(
    "password_leak_checks_total", "New passwords looked up in the list of leaked ones.", ["outcome"]
)

AUTH_PREFIX = "/api/v1/auth/"
COUNTED_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class WorkerCounts(multiprocess.MultiProcessCollector):
    """The metrics of all workers, read from the files they share."""

    def collect(self) -> Iterable[Metric]:
        """Return every metric family, skipping files that a worker has only just created.

        prometheus_client cannot read empty files, and a worker killed at that moment leaves one.
        """
        files = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).glob("*.db")
        written = [str(file) for file in files if _is_written(file)]
        families: Iterable[Metric] = self.merge(written, accumulate=True)  # type: ignore[no-untyped-call]
        return families


def _is_written(file: Path) -> bool:
    """Return whether a file has any content; it may just have vanished along with its worker."""
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False


class WorkerProcesses(Collector):
    """CPU time, memory and open files of all workers of this worker's master.

    prometheus_client omits these in multiprocess mode. They have their usual names, with a label
    `pid`: a sum of CPU seconds would fall whenever a worker is replaced, and so be no counter.
    """

    def collect(self) -> Iterable[Metric]:
        """Return one family per metric, with a sample per worker."""
        families: dict[str, Metric] = {}
        for pid in _workers():
            # Values that cannot be read are omitted: the worker may just have exited.
            for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                family = Metric(metric.name, metric.documentation, metric.type)
                family = families.setdefault(metric.name, family)
                for sample in metric.samples:
                    family.add_sample(sample.name, {"pid": str(pid)}, sample.value)
        return families.values()


def _workers() -> list[int]:
    """Return the ids of the master's child processes, including this one."""
    master = os.getppid()
    try:
        children = Path(f"/proc/{master}/task/{master}/children").read_text()
    except OSError:
        return [os.getpid()]  # not every kernel has this list
    return [int(pid) for pid in children.split()]


def count_request(
    method: str, rule: Rule | None, status: int, seconds: float, failure_code: str
) -> None:
    """Count one answered request under its route's pattern, never its path."""
    # A GET that redirects is a provider's callback, or a link from a mail.
    is_event = method in COUNTED_METHODS or (status == HTTPStatus.FOUND and method == "GET")
    if is_event and rule is not None and rule.rule.startswith(AUTH_PREFIX):
        outcome = "failure" if failure_code else "success"
        AUTH_EVENTS.labels(rule.endpoint, outcome, failure_code).inc()
    known = method if method in KNOWN_METHODS else "other"
    route = rule.rule if rule else "unmatched"
    REQUESTS.labels(known, route, str(status)).inc()
    DURATIONS.labels(known, route).observe(seconds)


def exposition(*others: Collector) -> Response:
    """Return all metrics in the exposition format, over all workers if there are several.

    `others` collect values that are only read at scrape time.
    """
    registry = CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry.register(WorkerCounts(None))  # type: ignore[no-untyped-call]
        registry.register(WorkerProcesses())
    else:
        registry.register(REGISTRY)
    for other in others:
        registry.register(other)
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
