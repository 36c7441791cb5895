"""The only source of time."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The clock injected into code that depends on time."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back."""

    def sleep(self, seconds: float) -> None:
        """Sleep; under gevent, only the calling greenlet does. 0 yields to the others."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep; under a gevent worker `time.sleep` is gevent's own."""
        time.sleep(seconds)
