"""A circuit breaker: requests do not each wait out the timeout of a Redis that is down."""

import logging
import math
import threading
from collections.abc import Callable
from typing import TypeVar

from redis import Redis
from redis.exceptions import RedisError

from app.core.clock import Clock
from app.core.outages import Outage

T = TypeVar("T")

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
# A Redis that is back answers a probe well within this.
PROBE_WAIT_SECONDS = 0.25
# An older failure says nothing, so every caller may try at once: otherwise those arriving during
# the first probe could be refused by a Redis that is back. Longer than a probe takes to time out.
FAILURE_TTL_SECONDS = 12.0
# Without a failure for this long, recovery is logged: a full Redis serves reads but refuses writes.
RECOVERED_AFTER_SECONDS = 5.0


class RedisAway(RedisError):
    """Redis did not answer a moment ago."""


class Breaker:
    """Calls Redis, and fails fast while it is known to be down.

    While it is down, one caller a second probes it and the others fail at once. Only those arriving
    in the first PROBE_WAIT_SECONDS of a probe wait for its outcome: otherwise, once Redis is back,
    all but one of several simultaneous callers would be refused. Clients with different timeouts
    need a breaker each: a Redis too slow for one may be fast enough for another.
    """

    def __init__(self, redis: Redis, clock: Clock) -> None:
        self._redis = redis
        self._clock = clock
        self._is_broken = False
        self._answers = 0
        self._failed_at = self._next_try_at = self._waits_until = -math.inf
        self._outage = Outage(log, "Redis failed", "Redis answers again")
        self._probe = threading.Event()  # set once the latest probe has its outcome
        self._probe.set()

    @property
    def is_broken(self) -> bool:
        """Return whether Redis failed when it was last asked."""
        return self._is_broken

    def call(self, ask: Callable[[Redis], T]) -> T:
        """Return the result of `ask`.

        Raises: RedisError, after at most PROBE_WAIT_SECONDS plus the timeouts of one call.
        """
        probe = self._begin_probe() if self._is_broken else None
        answers = self._answers
        try:
            answer = ask(self._redis)
        except RedisError as error:
            # If another call succeeded meanwhile, this one was sent before Redis was back.
            if self._answers == answers:
                self._record_failure(error)
            raise
        else:
            self._is_broken = False
            self._answers += 1
            if self._outage.is_ongoing:
                self._record_success()
            return answer
        finally:
            if probe is not None:
                probe.set()

    def _begin_probe(self) -> threading.Event | None:
        """Return the event to set after a probe; None if the caller may simply go ahead.

        Raises: RedisAway.
        """
        now = self._clock.monotonic()
        if now >= self._failed_at + FAILURE_TTL_SECONDS:
            return None
        if now >= self._next_try_at:
            self._next_try_at = now + RETRY_SECONDS
            self._waits_until = now + PROBE_WAIT_SECONDS
            self._probe = threading.Event()
            return self._probe
        if not self._probe.wait(max(0.0, self._waits_until - now)) or self._is_broken:
            raise RedisAway
        return None

    def _record_success(self) -> None:
        if self._clock.monotonic() >= self._failed_at + RECOVERED_AFTER_SECONDS:
            self._outage.record_success()

    def _record_failure(self, error: RedisError) -> None:
        self._is_broken = True
        self._failed_at = self._clock.monotonic()
        self._next_try_at = self._failed_at + RETRY_SECONDS
        self._outage.record_failure(f"{type(error).__name__}: {error}")
