"""All commands, of `flask` and of `gatehouse`."""

import logging
from importlib import import_module

import click
from flask import Flask
from flask.cli import ScriptInfo

from app import __version__
from app.audit_log.cli import group as audit
from app.events.cli import group as events
from app.external_auth.providers.cli import group as external_auth
from app.installation.cli import cleanup, doctor, overview, prepare, secret_key_commands
from app.invitations.cli import group as invitations
from app.mail.cli import group as mail
from app.sessions.cli import group as sessions
from app.settings.cli import group as config
from app.storage_policies.cli import group as storage
from app.team_admin.cli import group as teams
from app.user_admin.import_cli import group as users
from app.user_admin.token_cli import group as tokens
from app.web.cli import TopCommands

HELP = {"help_option_names": ["-h", "--help"]}

log = logging.getLogger(__name__)

COMMANDS = (
    prepare,
    doctor,
    cleanup,
    overview,
    users,
    invitations,
    external_auth,
    sessions,
    tokens,
    config,
    mail,
    storage,
    teams,
    events,
    secret_key_commands,
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
    app.cli = TopCommands(app.cli.name, context_settings=HELP)
    _fill(app.cli)


def main() -> None:
    """Be the command `gatehouse`, which loads the application once a command needs it."""

    def load() -> Flask:
        app: Flask = import_module("wsgi").app
        return app

    text = "Administer Gatehouse, the account, session and credential service."
    gatehouse = TopCommands("gatehouse", context_settings=HELP, help=text)
    _fill(gatehouse)
    version = click.version_option(__version__, prog_name="Gatehouse")
    context = ScriptInfo(create_app=load, set_debug_flag=False)
    version(gatehouse).main(prog_name="gatehouse", obj=context)


def _fill(group: click.Group) -> None:
    for command in COMMANDS:
        command.context_settings.update(HELP)  # which the commands of a group inherit
        group.add_command(command)
