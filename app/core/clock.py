"""The only source of time."""

import time
from datetime import UTC, datetime
from typing import Protocol

import gevent
import gevent.monkey


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
            _look_for_input()
        time.sleep(seconds)


def _look_for_input() -> None:
    """Have gevent's loop ask the system for input once; a sleep of 0 alone never does.

    The loop finds the watcher's event together with what waits on sockets, and the sleep of 0
    that follows lets the greenlets of those run first.
    """
    hub = gevent.get_hub()
    watcher = hub.loop.async_()
    hub.loop.run_callback(watcher.send)
    try:
        hub.wait(watcher)
    finally:
        watcher.close()
