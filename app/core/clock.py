"""The only source of time."""

import time
from datetime import UTC, datetime, timedelta

# More than the clocks of two machines may be apart, see `flask doctor`: a moment further ahead was
# written by a clock that was ahead.
SKEW = timedelta(seconds=5)


class Clock:
    """The machine's clock; it is handed to what depends on time, so that a test can set it."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep; under gevent, only the calling greenlet does. 0 yields to the others."""
        time.sleep(seconds)
