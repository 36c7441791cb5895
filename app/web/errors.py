"""Maps error kinds to HTTP statuses, and puts every failure into the envelope."""

import logging
from collections.abc import Mapping
from http import HTTPStatus

from flask import Flask, Response, request
from redis.exceptions import RedisError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from app.core import errors as kinds
from app.core.errors import ErrorCode
from app.crypto.secret_box import SecretUnreadable
from app.store.database import reason_of
from app.web.operation import fail

log = logging.getLogger(__name__)

STATUSES: dict[type[kinds.AppError], HTTPStatus] = {
    kinds.BadRequest: HTTPStatus.BAD_REQUEST,
    kinds.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    kinds.Forbidden: HTTPStatus.FORBIDDEN,
    kinds.NotFound: HTTPStatus.NOT_FOUND,
    kinds.Conflict: HTTPStatus.CONFLICT,
    kinds.Gone: HTTPStatus.GONE,
    kinds.PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    kinds.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    kinds.RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    kinds.ServerFault: HTTPStatus.INTERNAL_SERVER_ERROR,
    kinds.Misconfigured: HTTPStatus.INTERNAL_SERVER_ERROR,
    kinds.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    kinds.InsufficientStorage: HTTPStatus.INSUFFICIENT_STORAGE,
}
RETRY_SOON_SECONDS = 2
FAILURE_CODE = "gatehouse.failure_code"
# PostgreSQL's SQLSTATE for a write sent to a standby, as during a failover.
READ_ONLY = "25006"
DATABASE_FAILED = (OperationalError, InterfaceError, PoolTimeout)
REALM = "Bearer"


class EndpointNotFound(kinds.NotFound):
    """No route has this path."""

    code = ErrorCode.ENDPOINT_NOT_FOUND
    message = "There is no such endpoint."


class MethodNotAllowed(kinds.NotFound):
    """The route does not take this method; `Allow` names those it takes."""

    code = ErrorCode.ENDPOINT_NOT_FOUND
    message = "The endpoint does not support this method."


def status_of(error: type[kinds.AppError]) -> HTTPStatus:
    """Return the HTTP status of an error's kind."""
    return next(status for kind, status in STATUSES.items() if issubclass(error, kind))


def install(app: Flask) -> None:
    """Return every failure, ours and the framework's, in the envelope."""
    app.register_error_handler(HTTPException, _framework_error)
    app.register_error_handler(Exception, _any_error)


def note_failure(code: str) -> None:
    """Mark this request as failed in metrics and access log, whatever its status."""
    request.environ[FAILURE_CODE] = code


def _refusal(
    code: ErrorCode,
    message: str,
    status: int,
    headers: Mapping[str, str] | None = None,
    data: Mapping[str, bool] | None = None,
) -> Response:
    note_failure(code.value)
    return fail(code, message, status, headers, data)


def _app_error(error: kinds.AppError) -> Response:
    status = status_of(type(error))
    headers = {}
    retry_after = error.retry_after
    if retry_after is None and status == HTTPStatus.SERVICE_UNAVAILABLE:
        retry_after = RETRY_SOON_SECONDS
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = REALM  # RFC 9110 §15.5.2
    return _refusal(error.code, error.public_message, status, headers, error.data)


def _framework_error(error: HTTPException) -> Response:
    """Map an error raised by Flask itself."""
    if isinstance(error, RequestEntityTooLarge):
        return _app_error(kinds.TooLarge())
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    if status == HTTPStatus.NOT_FOUND:
        return _refusal(EndpointNotFound.code, EndpointNotFound.message, status)
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = {name: value for name, value in error.get_headers() if name == "Allow"}
        return _refusal(MethodNotAllowed.code, MethodNotAllowed.message, status, allowed)
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return _refusal(ErrorCode.BAD_REQUEST, error.description or "Bad request.", status)
    return _any_error(error)


def as_refusal(error: Exception) -> kinds.AppError | None:
    """Return the documented error for what failed a request; None for a fault of our own.

    A failure of the database, Redis or a key is logged in one line, a fault with its traceback.
    """
    if isinstance(error, kinds.AppError):
        if isinstance(error, SecretUnreadable):
            log.error("%s cannot be decrypted; is a key missing? See `flask doctor`", error.row)
        if isinstance(error, kinds.DatabaseUnavailable) and error.__cause__ is not None:
            log.error("the database failed: %s", reason_of(error))
        return error
    if isinstance(error, RedisError):
        log.error("Redis failed: %s", error)
        return kinds.RedisUnavailable()
    pgcode = getattr(getattr(error, "orig", None), "pgcode", None)
    if isinstance(error, DATABASE_FAILED) or pgcode == READ_ONLY:
        log.error("the database failed: %s", reason_of(error))
        return kinds.DatabaseUnavailable()
    log.error("unexpected failure", exc_info=error)
    return None


def _any_error(error: Exception) -> Response:
    refusal = as_refusal(error)
    if refusal is not None:
        return _app_error(refusal)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return _refusal(ErrorCode.INTERNAL_SERVER_ERROR, "Internal Server Error", status)
