"""Not waiting again and again for a Redis that does not answer."""

import logging
import math
import threading
from collections.abc import Callable
from typing import TypeVar

from redis import Redis
from redis.exceptions import RedisError

from app.core.clock import Clock

T = TypeVar("T")

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
# A Redis that is back answers whoever tries long before that.
TRIAL_SECONDS = 0.25
# A failure of so long ago says nothing, and everybody asks: or those who come while the first one
# waits would be refused by a Redis that is back. Longer than it takes one to find that it is not.
BELIEVED_SECONDS = 12.0


class RedisAway(RedisError):
    """Redis did not answer a moment ago."""


class Breaker:
    """Asks Redis, and remembers that it does not answer: not every request waits to find out.

    While it is away one caller a second tries. Whoever comes meanwhile waits a moment for what that
    one finds, so that a Redis which is back refuses nobody; the others are told at once. Clients
    that wait for different times need one each: a Redis that is late for some may be in time for
    the others.
    """

    def __init__(self, redis: Redis, clock: Clock) -> None:
        self._redis = redis
        self._clock = clock
        self._is_broken = False
        self._failed_at = self._next_try_at = -math.inf
        self._trial = threading.Event()  # set when whoever tried last knows the answer
        self._trial.set()

    @property
    def is_broken(self) -> bool:
        """Tell whether Redis did not answer when it was asked last."""
        return self._is_broken

    def call(self, ask: Callable[[Redis], T]) -> T:
        """Return what Redis answers.

        Raises: RedisError, after at most one time-out.
        """
        trial = self._begin() if self._is_broken else None
        try:
            answer = ask(self._redis)
        except RedisError:
            self._is_broken = True
            self._failed_at = self._clock.monotonic()
            self._next_try_at = self._failed_at + RETRY_SECONDS
            log.warning("Redis does not answer")
            raise
        else:
            self._is_broken = False
            return answer
        finally:
            if trial is not None:
                trial.set()

    def _begin(self) -> threading.Event | None:
        """Return what to set after a trial; None for whoever may just ask.

        Raises: RedisAway.
        """
        now = self._clock.monotonic()
        if now >= self._failed_at + BELIEVED_SECONDS:
            return None
        if now >= self._next_try_at:
            self._next_try_at = now + RETRY_SECONDS
            self._trial = threading.Event()
            return self._trial
        if not self._trial.wait(TRIAL_SECONDS) or self._is_broken:
            raise RedisAway
        return None
