"""Registers every command with the `flask` CLI."""

import logging

import click
from flask import Flask
from flask.cli import ScriptInfo, with_appcontext

from app.administration import instance, migrations
from app.administration.audit_cli import group as audit
from app.administration.cleanup_cli import cleanup
from app.administration.doctor_cli import doctor
from app.administration.keys_cli import group as keys
from app.administration.storage_cli import group as storage_group
from app.administration.teams_cli import group as teams
from app.administration.users_cli import group as users
from app.events.cli import group as events
from app.external_auth.providers.cli import group as external_auth
from app.invitations.cli import group as invitations
from app.mail.cli import group as mail
from app.sessions.cli import group as sessions
from app.settings.cli import group as config
from app.storage_policies import service as storage
from app.web.cli import Command, Output, TopCommands
from app.web.runtime import runtime

log = logging.getLogger(__name__)


@click.command("prepare", cls=Command, allows_missing_instance=True)
@click.option(
    "--new-keys", is_flag=True, help="Create new keys, because those in use are lost for good."
)
@with_appcontext
def prepare(new_keys: bool) -> Output:
    """Create the instance if it is new, and bring the database up to date.

    Local storage is set up as well, where that is configured. --new-keys is for a key file that is
    lost although its database is in use: everybody is signed out, and the stored secrets can no
    longer be read.
    """
    rt = runtime()
    instance.create_if_missing(rt, new_keys=new_keys)
    is_ours = migrations.upgrade(rt)
    if not is_ours:
        log.warning("the database was migrated by a newer version and is left as it is")
    elif rt.config.storage_bootstrap == "local":
        storage.bootstrap(rt)
    return Output({"prepared": is_ours})


COMMANDS = (
    prepare,
    doctor,
    cleanup,
    users,
    invitations,
    external_auth,
    sessions,
    config,
    mail,
    storage_group,
    teams,
    events,
    keys,
    audit,
)


def run(app: Flask, *arguments: str) -> int:
    """Run a command in this process, as the `flask` CLI would; return its exit code.

    Unexpected exceptions are logged, not raised: of some, gunicorn would print only the message.
    """
    context = ScriptInfo(create_app=lambda: app, set_debug_flag=False)
    try:
        app.cli.main([*arguments], prog_name="flask", obj=context)
    except SystemExit as end:
        if isinstance(end.code, str):
            click.echo(end.code, err=True)
            return 1
        return end.code or 0
    except Exception:
        log.exception("flask %s failed", " ".join(arguments))
    return 1


def install(app: Flask) -> None:
    """Add the commands to the application."""
    app.cli = TopCommands(app.cli.name)
    for command in COMMANDS:
        app.cli.add_command(command)
