"""Metrics collected on each scrape: database, Redis, outbox.

Each dependency answers or times out within seconds; the exposition is complete without it.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from app.core import redis as redis_client
from app.core.database.database import DATABASE_ERRORS
from app.core.database.read_only import require_writable
from app.core.runtime import Runtime
from app.mail import service as mail
from app.mail.service import Outbox

T = TypeVar("T")


class Dependencies(Collector):
    """The service's dependencies, as this worker sees them."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt

    def collect(self) -> Iterable[Metric]:
        """Probe database and Redis; one that does not answer has no response time."""
        up = GaugeMetricFamily(
            "dependency_up", "1 when it answered and takes changes, else 0.", labels=["dependency"]
        )
        seconds = GaugeMetricFamily(
            "dependency_response_seconds", "How long its answer took.", labels=["dependency"]
        )
        outbox = self._asked("database", self._outbox, DATABASE_ERRORS, up, seconds)
        self._asked("redis", self._redis, RedisError, up, seconds)
        yield up
        yield seconds
        if outbox is not None:
            yield from _outbox_metrics(outbox)

    def _outbox(self) -> Outbox:
        with self._rt.reading() as connection:
            require_writable(self._rt.database, connection)
            return mail.outbox(self._rt, connection)

    def _redis(self) -> None:
        redis_client.require_writable(self._rt.redis.fail_fast.client)

    def _asked(
        self,
        name: str,
        ask: Callable[[], T],
        failure: type[Exception] | tuple[type[Exception], ...],
        up: GaugeMetricFamily,
        seconds: GaugeMetricFamily,
    ) -> T | None:
        began = self._rt.clock.monotonic()
        try:
            answer = ask()
        except failure:
            up.add_metric([name], 0)
            return None
        up.add_metric([name], 1)
        seconds.add_metric([name], self._rt.clock.monotonic() - began)
        return answer


def _outbox_metrics(outbox: Outbox) -> Iterable[Metric]:
    mails = GaugeMetricFamily(
        "mail_outbox_mails", "Mails that have yet to leave or were given up.", labels=["status"]
    )
    for status, count in outbox.counts.items():
        mails.add_metric([status], count)
    yield mails
    yield GaugeMetricFamily(
        "mail_outbox_due_seconds",
        "For how long a mail has been due that nobody sends.",
        value=outbox.longest_due_seconds,
    )
    yield GaugeMetricFamily(
        "mail_outbox_oldest_seconds",
        "How old the oldest mail is that has yet to leave, however often it was tried.",
        value=outbox.oldest_seconds,
    )
