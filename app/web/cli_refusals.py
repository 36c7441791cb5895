"""Turns whatever stopped a command into a one-line refusal that says what to do."""

from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from app.core.database.sqlite import FileGone
from app.core.environment import ConfigError
from app.core.errors import AppError, BadRequest, DatabaseUnavailable, ErrorCode, RedisUnavailable
from app.web import runtime as web_runtime

# The errors of a database that lacks migrations: SQLite's, then PostgreSQL's.
UNPREPARED = ("no such table", "no such column", "UndefinedTable", "UndefinedColumn")
# Everything else is a bug and deserves its traceback.
FAILURES = (AppError, ConfigError, RedisError, SQLAlchemyError, OSError, UnicodeError)


class LocalFailure(AppError):
    """Something on this machine, such as a file's permissions, prevents it."""

    code = ErrorCode.CONFIG_ERROR
    message = "The configuration cannot be used."


def refusal_of(error: Exception) -> AppError:
    """Return a documented refusal for whatever stopped a command."""
    if isinstance(error, AppError):
        return error
    if isinstance(error, RedisError):
        return RedisUnavailable(f"Redis does not answer: {_first_line(error)}")
    if isinstance(error, SQLAlchemyError):
        return _database_refusal(error)
    if isinstance(error, UnicodeError):
        return BadRequest("The text is not valid UTF-8.")
    if isinstance(error, OSError) and error.filename:
        return LocalFailure(f"{error.filename}: {error.strerror}")
    return LocalFailure(_first_line(error))


def _database_refusal(error: SQLAlchemyError) -> AppError:
    cause = error.orig if isinstance(error, DBAPIError) else error
    description, reason = f"{type(cause).__name__}: {cause}", _first_line(cause)
    if isinstance(cause, FileGone):
        return DatabaseUnavailable(
            f"The database failed: {reason}. Put it back, or correct GATEHOUSE_DATABASE_URL; only "
            "for a new installation `flask prepare` makes one."
        )
    if any(sign in description for sign in UNPREPARED):
        return DatabaseUnavailable(
            f"The database is not up to date ({reason}): run `flask prepare` first."
        )
    if (file := web_runtime.runtime().database.file) is not None:
        if not file.path.parent.is_dir():
            reason += ". Make its folder, or correct GATEHOUSE_DATABASE_URL."
        return DatabaseUnavailable(f"The database {file.path} failed: {reason}")
    if isinstance(error, OperationalError) and getattr(cause, "pgcode", None) is None:
        # The connection failed or was lost.
        reason += ". Start it, or correct GATEHOUSE_DATABASE_URL."
    return DatabaseUnavailable(f"The database failed: {reason}")


def _first_line(error: BaseException | None) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
