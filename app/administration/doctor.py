"""Runs the checks of `flask doctor`."""

from collections.abc import Callable

from app.administration import settings_checks as settings
from app.administration import system_checks as system
from app.administration.findings import Finding, Level, fail
from app.core.config import ConfigError
from app.core.runtime import Runtime
from app.web.cli_refusals import FAILURES, refusal_of

Check = Callable[[Runtime], Finding]

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
    except ConfigError:  # the "keys" check reports the details
        return fail("This cannot be checked without the keys.")
    except FAILURES as error:
        return fail(refusal_of(rt, error).public_message)
