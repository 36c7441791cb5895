"""`flask cleanup`: delete what has expired now, without waiting for the scheduled cleanup."""

from dataclasses import asdict

import click
from flask.cli import with_appcontext

from app.administration import service
from app.web.cli import Command, Output
from app.web.runtime import runtime


@click.command("cleanup", cls=Command)
@with_appcontext
def cleanup() -> Output:
    """Delete what has expired: sessions, links, old mails, archived teams and audit entries.

    Files left behind by avatar uploads that were killed are deleted, too.
    """
    cleaned = service.cleanup(runtime())
    return Output(asdict(cleaned), f"deleted {cleaned}")
