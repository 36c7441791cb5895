"""Kinds of error. Each documented condition is a subclass with its own code and public message.

Only `web/errors.py` knows which HTTP status a kind maps to.
"""

from typing import ClassVar

from app.core.error_codes import ErrorCode


class AppError(Exception):
    """A documented condition that ends a request; its message is shown to the caller."""

    code: ClassVar[ErrorCode]
    message: ClassVar[str]

    def __init__(self, message: str | None = None, *, retry_after: int | None = None) -> None:
        self.public_message = message or self.message
        self.retry_after = retry_after
        super().__init__(self.public_message)

    @classmethod
    def example(cls) -> str:
        """Return a message as callers get it, for the API description."""
        return cls.message


class BadRequest(AppError):
    """The request cannot be understood or breaks a rule."""

    code = ErrorCode.BAD_REQUEST
    message = "The request is not valid."


class Unauthenticated(AppError):
    """The caller's identity is not proven."""

    code = ErrorCode.AUTH_FAILED
    message = "Authentication failed."


class Forbidden(AppError):
    """The caller is known and may not do this."""

    code = ErrorCode.FORBIDDEN
    message = "This is not allowed."


class NotFound(AppError):
    """There is no such thing, or it is not the caller's."""

    code = ErrorCode.NOT_FOUND
    message = "Not found."


class Conflict(AppError):
    """The current state does not allow the operation."""

    code = ErrorCode.CONFLICT
    message = "The present state does not allow this."


class Gone(AppError):
    """It was there and has expired."""

    code = ErrorCode.AUTH_CONTACT_VERIFICATION_EXPIRED
    message = "This has expired."


class TooLarge(AppError):
    """The request body is larger than this route accepts."""

    code = ErrorCode.FILE_TOO_LARGE
    message = "The request body is too large."


class PreconditionFailed(AppError):
    """The installation lacks something the operation needs."""

    code = ErrorCode.PRECONDITION_FAILED
    message = "This installation cannot do this."


class RateLimited(AppError):
    """Too many requests; Retry-After and the message say in how many seconds to try again."""

    code = ErrorCode.RATE_LIMITED
    message = "Too many requests."

    def __init__(self, message: str | None = None, *, retry_after: int) -> None:
        super().__init__(
            f"{message or self.message} Try again in {retry_after} s.", retry_after=retry_after
        )

    @classmethod
    def example(cls) -> str:
        """Return a message as callers get it, for the API description."""
        return cls(retry_after=30).public_message


class Misconfigured(AppError):
    """An administrator's settings cannot work."""

    code = ErrorCode.CONFIG_ERROR
    message = "The service is not configured correctly."


class Unavailable(AppError):
    """Something the service depends on does not answer right now."""

    code = ErrorCode.INTERNAL_SERVER_ERROR
    message = "The service is temporarily unavailable."


class RedisUnavailable(Unavailable):
    """Redis does not answer."""


class DatabaseUnavailable(Unavailable):
    """The database does not answer, or is too busy."""

    code = ErrorCode.DATABASE_ERROR
    message = "The database is temporarily unavailable."


class DatabaseConnectionLost(DatabaseUnavailable):
    """The connection was lost during a statement: a change may have been made, or not."""


class ServerFault(AppError):
    """The service itself failed, in a documented way; the log says how."""

    code = ErrorCode.INTERNAL_SERVER_ERROR
    message = "Internal Server Error"


class InsufficientStorage(AppError):
    """There is not enough storage for the data."""

    code = ErrorCode.STORAGE_QUOTA_EXCEEDED
    message = "There is not enough storage."
