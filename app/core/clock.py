"""The only source of time."""

import time
from datetime import UTC, datetime, timedelta

# More than two machines' clocks may differ by; `flask doctor` checks that.
SKEW = timedelta(seconds=5)


class Clock:
    """The machine's clock; it is handed to what depends on time, so that a test can set it."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""
        return datetime.now(UTC)

    def is_ahead(self, moment: datetime) -> bool:
        """Return whether a moment that should be past is still to come: a fast clock wrote it.

        Such a moment is ignored: what it delays goes on, what it vouches for is not believed, and
        a link, code or step of a sign-in that began then is over (docs/operations.md, "The clock").
        """
        return moment > self.now() + SKEW

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep; under gevent, only the calling greenlet does. 0 yields to the others."""
        time.sleep(seconds)
