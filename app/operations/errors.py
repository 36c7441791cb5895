"""Errors of the readiness check and of the reference page."""

from app.core.errors import ErrorCode, Unavailable
from app.web.errors import EndpointNotFound


class CacheUnavailable(Unavailable):
    """Redis does not answer, or accepts no writes."""

    code = ErrorCode.CONFIG_ERROR
    message = "Cache unavailable"


class DatabaseUnreachable(Unavailable):
    """The database does not answer, accepts no writes, or lacks migrations."""

    code = ErrorCode.DATABASE_ERROR
    message = "Database unavailable"


class PageFileMissing(EndpointNotFound):
    """The reference page has no such file."""
