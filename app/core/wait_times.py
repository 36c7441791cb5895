"""For how long a request has waited for database and Redis, told when it turns out to be slow."""

from contextvars import ContextVar


class WaitTimes:
    """Seconds that one request has waited by now; what is done for it in the background is not."""

    __slots__ = ("database", "redis")

    def __init__(self) -> None:
        self.database = self.redis = 0.0


current: ContextVar[WaitTimes | None] = ContextVar("wait_times", default=None)


def add_database(seconds: float) -> None:
    """Note that the current request, if there is one, has waited for the database."""
    if (waits := current.get()) is not None:
        waits.database += seconds


def add_redis(seconds: float) -> None:
    """Note that the current request, if there is one, has waited for Redis."""
    if (waits := current.get()) is not None:
        waits.redis += seconds
