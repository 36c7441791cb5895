"""`flask doctor`: check the whole installation, and say how to fix what is wrong."""

import click
from flask.cli import with_appcontext

from app.administration.doctor import examine
from app.administration.findings import Level
from app.web.cli import Command, Output, printable
from app.web.runtime import runtime


@click.command("doctor", cls=Command, allows_missing_keys=True)
@click.option("--strict", is_flag=True, help="Exit 1 on a warning, too.")
@with_appcontext
def doctor(strict: bool) -> Output:
    """Check everything the service depends on; exit 1 if something fails."""
    diagnosis = examine(runtime())
    is_well = not diagnosis.has(Level.FAIL) and not (strict and diagnosis.has(Level.WARN))
    checks = [
        {"check": name, "level": finding.level.value, "message": finding.message}
        for name, finding in diagnosis.findings.items()
    ]
    lines = [f"{c['level']:<4}  {c['check']}: {printable(c['message'])}" for c in checks]
    return Output(
        {"ok": is_well, "checks": checks}, "\n".join(lines), exit_code=0 if is_well else 1
    )
