"""Not waiting again and again for a Redis that does not answer."""

import logging
import math
from collections.abc import Callable
from typing import TypeVar

from redis import Redis
from redis.exceptions import RedisError

from app.core.clock import Clock

T = TypeVar("T")

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
# A failure of so long ago says nothing, and everybody asks: or those who come while the first one
# waits would be refused by a Redis that is back. Longer than it takes one to find that it is not.
BELIEVED_SECONDS = 12.0


class RedisAway(RedisError):
    """Redis did not answer a moment ago."""


class Breaker:
    """Asks Redis, and remembers that it does not answer: not every request waits to find out.

    While it is away one caller a second tries; the others are told at once. Clients that wait for
    different times need one each: a Redis that is late for some may be in time for the others.
    """

    def __init__(self, redis: Redis, clock: Clock) -> None:
        self._redis = redis
        self._clock = clock
        self._is_broken = False
        self._failed_at = self._next_try_at = -math.inf

    @property
    def is_broken(self) -> bool:
        """Tell whether Redis did not answer when it was asked last."""
        return self._is_broken

    def call(self, ask: Callable[[Redis], T]) -> T:
        """Return what Redis answers.

        Raises: RedisError, after at most one time-out.
        """
        if self._is_broken:
            now = self._clock.monotonic()
            if now < min(self._next_try_at, self._failed_at + BELIEVED_SECONDS):
                raise RedisAway
            self._next_try_at = now + RETRY_SECONDS
        try:
            answer = ask(self._redis)
        except RedisError:
            self._is_broken = True
            self._failed_at = self._clock.monotonic()
            self._next_try_at = self._failed_at + RETRY_SECONDS
            log.warning("Redis does not answer")
            raise
        self._is_broken = False
        return answer
