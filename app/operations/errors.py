"""Refusals of the readiness check (spec 04 §8.1) and of the reference page."""

from app.core.error_codes import ErrorCode
from app.core.errors import NotFound, Unavailable


class CacheUnavailable(Unavailable):
    """Redis does not answer."""

    code = ErrorCode.CONFIG_ERROR
    message = "Cache unavailable"


class DatabaseUnreachable(Unavailable):
    """The database does not answer."""

    code = ErrorCode.DATABASE_ERROR
    message = "Database unavailable"


class PageFileMissing(NotFound):
    """The reference page has no such file."""

    code = ErrorCode.ENDPOINT_NOT_FOUND
    message = "There is no such endpoint."
