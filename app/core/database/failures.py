"""Why the database failed, in words that are safe to log."""

from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.errors import AppError

POOL_TIMEOUT_SECONDS = 5


class NoConnectionFree(Exception):
    """Every connection was in use for as long as a caller waits for one."""


def reason_of(error: BaseException) -> str:
    """Return the driver's error, its code and its first line; later lines may repeat values."""
    while (cause := _cause(error)) is not None:
        error = cause
    if isinstance(error, PoolTimeout):
        # SQLAlchemy's text speaks of its pool's options, which nobody here has set.
        error = NoConnectionFree(f"no connection was free for {POOL_TIMEOUT_SECONDS:g} s")
    code = getattr(error, "pgcode", None) or getattr(error, "sqlite_errorname", None)
    what = f"{type(error).__name__} {code}" if code else type(error).__name__
    line = str(error).strip().partition("\n")[0]
    return f"{what}: {line}" if line else what


def _cause(error: BaseException) -> BaseException | None:
    """Return the error that one of SQLAlchemy's or of ours wraps."""
    orig: BaseException | None = getattr(error, "orig", None)
    return error.__cause__ if isinstance(error, AppError) else orig
