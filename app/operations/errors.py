"""Refusals of the readiness check (spec 04 §8.1)."""

from app.core.error_codes import ErrorCode
from app.core.errors import Unavailable


class CacheUnavailable(Unavailable):
    """Redis does not answer."""

    code = ErrorCode.CONFIG_ERROR
    message = "Cache unavailable"


class DatabaseUnreachable(Unavailable):
    """The database does not answer."""

    code = ErrorCode.DATABASE_ERROR
    message = "Database unavailable"
