"""Logs the outages of what a process depends on: once when one begins, and once when it ends."""

import logging
import threading

MAX_REASONS = 5


class Outage:
    """Something that fails for a while; `begins` and `ends` are the messages to log.

    In between, only a new reason is logged, such as a password refused after a lost connection, and
    at most MAX_REASONS of them: some contain numbers, so that each would be new.
    """

    def __init__(self, log: logging.Logger, begins: str, ends: str) -> None:
        self._log, self._begins, self._ends = log, begins, ends
        self._lock = threading.Lock()
        self._reasons: set[str] = set()

    @property
    def is_ongoing(self) -> bool:
        """Return whether the outage has begun and not ended."""
        return bool(self._reasons)

    def record_failure(self, reason: str) -> None:
        """Record a failure, and log it if its reason is new."""
        with self._lock:
            if reason in self._reasons or len(self._reasons) >= MAX_REASONS:
                return
            self._reasons.add(reason)
        self._log.warning("%s: %s", self._begins, reason)

    def record_success(self) -> None:
        """Record a success, and log the end of an outage."""
        if not self._reasons:
            return
        with self._lock:
            reasons, self._reasons = self._reasons, set()
        if reasons:
            self._log.warning("%s", self._ends)
