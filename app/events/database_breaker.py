"""Circuit breaker for the streams' queries; heartbeats go on if the database is down or hangs."""

import logging
import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from app.core.blocking_calls import run_in_daemon_thread
from app.core.clock import Clock
from app.core.database.database import DATABASE_ERRORS
from app.core.database.failures import reason_of
from app.core.errors import DatabaseUnavailable
from app.core.outages import Outage

T = TypeVar("T")

log = logging.getLogger(__name__)

# Timeout of a query: one that hangs may hang for minutes.
QUERY_TIMEOUT_SECONDS = 5.0
# Interval between attempts while the database does not answer; allows a recovery within 5 s.
RETRY_SECONDS = 1.0
# Limit of hanging queries, each occupying a connection; at it, no further query is started.
MAX_HANGING = 2


class DatabaseBreaker:
    """Runs queries for the streams of one process, and fails fast after one has failed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_at = -math.inf
        self._lock = threading.Lock()
        self._late: list[Future[Any]] = []
        self._outage = Outage(
            log,
            "events wait, and streams go on: the database does not answer",
            "events go on: the database answers again",
        )

    def ask(self, query: Callable[[], T]) -> T:
        """Run `query` with a timeout and return its result.

        Raises: DATABASE_ERRORS, at once if a query failed less than RETRY_SECONDS ago.
        """
        if self._clock.monotonic() < self._due_at:
            raise DatabaseUnavailable
        try:
            found = self._answer(query)
        except DATABASE_ERRORS as error:
            self._due_at = self._clock.monotonic() + RETRY_SECONDS
            self._outage.record_failure(reason_of(error))
            raise
        self._outage.record_success()
        return found

    def _answer(self, query: Callable[[], T]) -> T:
        with self._lock:
            self._late = [question for question in self._late if not question.done()]
            if len(self._late) >= MAX_HANGING:
                raise DatabaseUnavailable from TimeoutError("earlier questions have no answer yet")
        question = run_in_daemon_thread(query, thread="question of streams")
        try:
            return question.result(QUERY_TIMEOUT_SECONDS)
        except TimeoutError:
            with self._lock:
                self._late.append(question)
            reason = TimeoutError(f"no answer for {QUERY_TIMEOUT_SECONDS:g} s")
            raise DatabaseUnavailable from reason
