"""Not waiting again and again for a Redis that does not answer."""

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
# A Redis that is back answers whoever tries long before that.
TRIAL_SECONDS = 0.25
# A failure of so long ago says nothing, and everybody asks: or those who come while the first one
# waits would be refused by a Redis that is back. Longer than it takes one to find that it is not.
BELIEVED_SECONDS = 12.0
# A Redis that is full answers who reads and refuses who writes: that it is well is told after that.
STEADY_SECONDS = 5.0


class RedisAway(RedisError):
    """Redis did not answer a moment ago."""


class Breaker:
    """Asks Redis, and remembers that it does not answer: not every request waits to find out.

    While it is away one caller a second tries, and the others are told at once. But whoever comes
    in the first moment of a trial waits for what that one finds: a Redis that is back would else
    refuse all but one of those who come together. Clients that wait for different times need one
    each: a Redis that is late for some may be in time for the others.
    """

    def __init__(self, redis: Redis, clock: Clock) -> None:
        self._redis = redis
        self._clock = clock
        self._is_broken = False
        self._answers = 0
        self._failed_at = self._next_try_at = self._waits_until = -math.inf
        self._outage = Outage(log, "Redis failed", "Redis answers again")
        self._trial = threading.Event()  # set when whoever tried last knows the answer
        self._trial.set()

    @property
    def is_broken(self) -> bool:
        """Tell whether Redis did not answer when it was asked last."""
        return self._is_broken

    def call(self, ask: Callable[[Redis], T]) -> T:
        """Return what Redis answers.

        Raises: RedisError, after at most TRIAL_SECONDS and one time-out.
        """
        trial = self._begin() if self._is_broken else None
        answers = self._answers
        try:
            answer = ask(self._redis)
        except RedisError as error:
            # Unless it has answered somebody meanwhile: then this was asked before it was back.
            if self._answers == answers:
                self._note_failure(error)
            raise
        else:
            self._is_broken = False
            self._answers += 1
            if self._outage.lasts:
                self._note_answer()
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
            self._waits_until = now + TRIAL_SECONDS
            self._trial = threading.Event()
            return self._trial
        if not self._trial.wait(max(0.0, self._waits_until - now)) or self._is_broken:
            raise RedisAway
        return None

    def _note_answer(self) -> None:
        if self._clock.monotonic() >= self._failed_at + STEADY_SECONDS:
            self._outage.end()

    def _note_failure(self, error: RedisError) -> None:
        self._is_broken = True
        self._failed_at = self._clock.monotonic()
        self._next_try_at = self._failed_at + RETRY_SECONDS
        self._outage.note(f"{type(error).__name__}: {error}")
