"""A clock that moves only when a test advances it."""

from datetime import UTC, datetime, timedelta

from app.core.clock import Clock


class FakeClock(Clock):
    """Stands still until `advance`; `sleep` only records the duration."""

    def __init__(self, start: datetime = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)) -> None:
        self._start = self._now = start
        self._monotonic = 5000.0
        self.slept: list[float] = []

    @property
    def has_moved(self) -> bool:
        """Whether a test has advanced it."""
        return self._now != self._start

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def turn(self, **span: float) -> None:
        """Turn its hands by `timedelta(**span)`, perhaps back, while no time passes."""
        self._now += timedelta(**span)

    def advance(self, **span: float) -> datetime:
        """Advance by `timedelta(**span)`; return the new time."""
        passed = timedelta(**span)
        self._now += passed
        self._monotonic += passed.total_seconds()
        return self._now
