"""Hangs every command on the `flask` command."""

import click
from flask import Flask
from flask.cli import with_appcontext
from flask_migrate import upgrade

from app.storage_policies import service as storage
from app.web.runtime import runtime


@click.command("prepare")
@with_appcontext
def prepare() -> None:
    """Bring the database up to date and, where configured, set up local storage."""
    rt = runtime()
    upgrade()
    if rt.config.storage_bootstrap == "local":
        storage.bootstrap(rt)


def install(app: Flask) -> None:
    """Add the commands to the application."""
    app.cli.add_command(prepare)
