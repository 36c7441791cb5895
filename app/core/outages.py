"""What one part of a process does without: told in the log when it begins, and when it ends."""

import logging
import threading

MAX_REASONS = 5


class Outage:
    """Something that does not work for a while; `begins` and `ends` are its lines in the log.

    In between only another reason is told, such as the password that is refused after the cut, and
    not without end: some reasons hold numbers.
    """

    def __init__(self, log: logging.Logger, begins: str, ends: str) -> None:
        self._log, self._begins, self._ends = log, begins, ends
        self._lock = threading.Lock()
        self._reasons: set[str] = set()

    @property
    def lasts(self) -> bool:
        """Tell whether it has begun and not ended."""
        return bool(self._reasons)

    def note(self, reason: str) -> None:
        """Take down that it did not work."""
        with self._lock:
            if reason in self._reasons or len(self._reasons) >= MAX_REASONS:
                return
            self._reasons.add(reason)
        self._log.warning("%s: %s", self._begins, reason)

    def end(self) -> None:
        """Take down that it worked."""
        if not self._reasons:
            return
        with self._lock:
            reasons, self._reasons = self._reasons, set()
        if reasons:
            self._log.warning("%s", self._ends)
