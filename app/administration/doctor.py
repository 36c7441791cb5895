"""Runs the checks of `flask doctor`."""

import sqlite3
from collections.abc import Callable

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.administration import settings_checks as settings
from app.administration import system_checks as system
from app.administration.findings import Finding, Level, fail
from app.core.database.sqlite import FileGone, kind_of
from app.core.environment import ConfigError
from app.core.errors import AppError
from app.core.runtime import Runtime

Check = Callable[[Runtime], Finding]

# The file is not a database, or is corrupt. Every other error leaves it as good as it was.
UNUSABLE_FILE_ERRORS = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

MACHINE: dict[str, Check] = {
    "configuration": system.configuration,
    "instance folder": system.instance_folder,
    "keys": system.keys,
    "avatars": system.avatars,
    "password hash": system.password_hash,
    "redis": system.redis,
    "database": system.database,
}
# Run in stages: one finding about an unreachable or an empty database is enough.
DATABASE: dict[str, Check] = {
    "clock": system.clock,
    "migrations": system.migrations,
}
ROWS: dict[str, Check] = {
    "stored secrets": settings.stored_secrets,
    "settings": settings.values,
    "site address": settings.site_address,
    "cookies": settings.cookies,
    "mail": settings.mail,
    "external sign-in": settings.external_sign_in,
    "storage route": settings.storage_route,
}


def examine(rt: Runtime) -> dict[str, Finding]:
    """Run every check whose prerequisites hold; a check that cannot run counts as failed."""
    findings = _run(rt, MACHINE)
    if findings["database"].level is not Level.FAIL:
        findings |= _run(rt, DATABASE)
        if findings["migrations"].level is not Level.FAIL:
            findings |= _run(rt, ROWS)
    return findings


def _run(rt: Runtime, checks: dict[str, Check]) -> dict[str, Finding]:
    return {name: _finding(rt, check) for name, check in checks.items()}


def _finding(rt: Runtime, check: Check) -> Finding:
    try:
        return check(rt)
    except AppError as error:
        return fail(error.public_message)
    except ConfigError:  # the "keys" check reports the details
        return fail("This cannot be checked without the keys.")
    except RedisError as error:
        return fail(f"Redis does not answer ({error}). Start it, or correct GATEHOUSE_REDIS_URL.")
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        if rt.database.is_sqlite:
            file = rt.database.engine.url.database
            return fail(f"{file} cannot be used as a database ({reason}). {_file_remedy(error)}")
        return fail(f"The database failed ({reason}). Start it, or correct GATEHOUSE_DATABASE_URL.")
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}.")


def _file_remedy(error: SQLAlchemyError) -> str:
    if isinstance(getattr(error, "orig", None), FileGone):
        return (
            "See whether its disk is mounted, put the file back, or a backup in its place, or "
            "correct GATEHOUSE_DATABASE_URL. Only for a new installation `flask prepare` makes one."
        )
    if kind_of(error) in UNUSABLE_FILE_ERRORS:
        return "Put a backup in its place, or correct GATEHOUSE_DATABASE_URL."
    return (
        "See whether its folder is there, has room and belongs to the user the service runs as, or "
        "correct GATEHOUSE_DATABASE_URL."
    )
