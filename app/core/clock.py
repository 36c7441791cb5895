"""The only source of time."""

import time
from datetime import UTC, datetime
from typing import Protocol

import gevent.monkey

from app.core.turns import take_turns


class Clock(Protocol):
    """What code that depends on time is given."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back."""

    def sleep(self, seconds: float) -> None:
        """Wait; under gevent only the calling greenlet does. 0 lets others run first."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; `time.sleep` is gevent's own under a gevent worker."""
        if seconds == 0 and gevent.monkey.is_module_patched("time"):
            take_turns()  # those whose input is found then run before the next line returns
        time.sleep(seconds)
