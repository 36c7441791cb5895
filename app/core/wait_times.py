"""How long a request has waited for the database and Redis, logged if it turns out to be slow."""

from contextvars import ContextVar


class WaitTimes:
    """Seconds that one request has waited so far; work in the background does not count."""

    __slots__ = ("database", "redis")

    def __init__(self) -> None:
        self.database = self.redis = 0.0


current: ContextVar[WaitTimes | None] = ContextVar("wait_times", default=None)


def add_database(seconds: float) -> None:
    """Add to the time the current request, if there is one, has waited for the database."""
    if (waits := current.get()) is not None:
        waits.database += seconds


def add_redis(seconds: float) -> None:
    """Add to the time the current request, if there is one, has waited for Redis."""
    if (waits := current.get()) is not None:
        waits.redis += seconds
