"""Turns whatever stopped a command, or a check of `flask doctor`, into one line that says why."""

import sqlite3

from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from app.core.config import ConfigError
from app.core.database.sqlite import FileGone, kind_of
from app.core.errors import AppError, BadRequest, DatabaseUnavailable, ErrorCode, RedisUnavailable
from app.core.runtime import Runtime

# The errors of a database that lacks migrations: SQLite's, then PostgreSQL's.
UNPREPARED = ("no such table", "no such column", "UndefinedTable", "UndefinedColumn")
# Everything else is a bug and deserves its traceback.
FAILURES = (AppError, ConfigError, RedisError, SQLAlchemyError, OSError, UnicodeError)


class LocalFailure(AppError):
    """Something on this machine, such as a file's permissions, prevents it."""

    code = ErrorCode.CONFIG_ERROR
    message = "The configuration cannot be used."


def refusal_of(rt: Runtime, error: Exception) -> AppError:
    """Return a documented refusal for whatever stopped a command."""
    if isinstance(error, AppError):
        return error
    if isinstance(error, RedisError):
        reason = _first_line(error).rstrip(".")
        return RedisUnavailable(
            f"Redis does not answer: {reason}. Start it, or correct GATEHOUSE_REDIS_URL."
        )
    if isinstance(error, SQLAlchemyError):
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        which = f" {rt.database.file.path}" if rt.database.file else ""
        return DatabaseUnavailable(
            f"The database{which} failed: {_first_line(cause)}{_remedy(rt, error, cause)}"
        )
    if isinstance(error, UnicodeError):
        return BadRequest("The text is not valid UTF-8.")
    if isinstance(error, OSError) and error.filename:
        return LocalFailure(f"{error.filename}: {error.strerror}")
    return LocalFailure(_first_line(error))


def _remedy(rt: Runtime, error: SQLAlchemyError, cause: BaseException) -> str:
    if any(sign in f"{type(cause).__name__}: {cause}" for sign in UNPREPARED):
        return ". Run `flask prepare` first."
    if isinstance(cause, FileGone):
        return (
            ". See whether its disk is mounted, put the file back, or a backup in its place, or "
            "correct GATEHOUSE_DATABASE_URL; only for a new installation `flask prepare` makes one."
        )
    if kind_of(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return ". Put a backup in its place, or correct GATEHOUSE_DATABASE_URL."
    if rt.database.is_sqlite:
        return (
            ". See whether its folder is there, has room and belongs to the user the service runs "
            "as, or correct GATEHOUSE_DATABASE_URL."
        )
    if isinstance(error, OperationalError) and getattr(cause, "pgcode", None) is None:
        # The connection failed or was lost.
        return ". Start it, or correct GATEHOUSE_DATABASE_URL."
    return ""


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
