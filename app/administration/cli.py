"""All commands of the `flask` CLI: those about the installation are here."""

import logging
from datetime import UTC, datetime
from typing import Any

import click
from flask import Flask
from flask.cli import ScriptInfo, with_appcontext

from app.administration import service
from app.administration.doctor import examine
from app.administration.machine_checks import Level
from app.administration.teams_cli import group as teams
from app.administration.users_cli import group as users
from app.audit.models import Action
from app.audit.queries import Filter
from app.core import folders
from app.core.keyring import SecretKey
from app.core.texts import pluralized
from app.events.cli import group as events
from app.external_auth.providers.cli import group as external_auth
from app.invitations.cli import group as invitations
from app.mail.cli import group as mail
from app.sessions.cli import group as sessions
from app.settings.cli import group as config
from app.storage_policies import service as storage
from app.storage_policies.cli import group as storage_group
from app.users.models import Account
from app.users.schemas import ManagedProfile
from app.web.cli import (
    Command,
    Commands,
    Output,
    TopCommands,
    Word,
    limit_option,
    printable,
    table,
)
from app.web.runtime import runtime

HELP = {"help_option_names": ["-h", "--help"]}

log = logging.getLogger(__name__)


@click.command("prepare", cls=Command, requires_instance=False)
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
    service.create_if_missing(rt, new_keys=new_keys)
    is_ours = service.migrate(rt)
    if not is_ours:
        log.warning("the database was migrated by a newer version and is left as it is")
    elif rt.config.storage_bootstrap == "local":
        storage.bootstrap(rt)
    return Output({"prepared": is_ours})


@click.command("doctor", cls=Command, requires_instance=False)
@click.option("--strict", is_flag=True, help="Exit 1 on a warning, too.")
@with_appcontext
def doctor(strict: bool) -> Output:
    """Check everything the service depends on; exit 1 if something fails."""
    rt = runtime()
    folders.require_instance(rt.config.instance)
    findings = examine(rt)
    bad = {Level.FAIL, Level.WARN} if strict else {Level.FAIL}
    is_well = not any(finding.level in bad for finding in findings.values())
    checks = [
        {"check": name, "level": finding.level.value, "message": finding.message}
        for name, finding in findings.items()
    ]
    lines = [f"{c['level']:<4}  {c['check']}: {printable(c['message'])}" for c in checks]
    return Output(
        {"ok": is_well, "checks": checks}, "\n".join(lines), exit_code=0 if is_well else 1
    )


@click.command("cleanup", cls=Command)
@with_appcontext
def cleanup() -> Output:
    """Delete what has expired: sessions, links, old mails, archived teams and audit entries.

    Files left behind by avatar uploads that were killed are deleted, too.
    """
    cleaned = service.cleanup(runtime())
    return Output(cleaned, f"deleted {service.in_words(cleaned)}")


keys = Commands("keys", help="The secret keys that sign and encrypt.")


@keys.command("list")
def list_keys() -> Output:
    """List the keys, the one that signs first."""
    keyring = runtime().keyring
    signing = keyring.current()
    data = [_key(key, signing) for key in keyring.keys]
    titles = ["ID", "CREATED", "RETIRED", "SIGNS"]
    return Output(data, table(titles, [list(entry.values()) for entry in data]))


@keys.command("rotate")
def rotate() -> Output:
    """Sign and encrypt with a new key; what older keys made remains valid.

    Exit 1 when a stored secret cannot be read with any key.
    """
    key, resealed, unreadable = service.rotate_keys(runtime())
    data = {"key": _key(key, key), "resealed": resealed, "unreadable": unreadable}
    secrets = pluralized(resealed, "secret was", "secrets were")
    text = f"key {key.key_id} signs now; {secrets} encrypted anew"
    if unreadable:
        text += f", {unreadable} cannot be read with any key: see `flask doctor`"
    return Output(data, text, exit_code=1 if unreadable else 0)


def _key(key: SecretKey, signing: SecretKey) -> dict[str, Any]:
    return {
        "id": key.key_id,
        "created_at": key.created_at,
        "retired_at": key.retired_at,
        "is_signing": key.key_id == signing.key_id,
    }


@storage_group.command("bootstrap")
def bootstrap() -> Output:
    """Complete the default storage route and assign everybody without a group; may be run again."""
    rt = runtime()
    route = storage.bootstrap(rt, is_audited=True)
    state = service.setup_state(rt)
    data = {"policy_id": route.policy_id, "group_id": route.group_id, "setup_state": state.value}
    text = f"policy {route.policy_id}, group {route.group_id}; the installation is {state.value}"
    return Output(data, text)


def point_in_time(typed: str) -> datetime:
    """Read RFC 3339, or only a date; UTC unless it has an offset."""
    try:
        moment = datetime.fromisoformat(typed)
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{typed!r} is not a time; expected e.g. 2026-03-02 or 2026-03-02T09:30:00Z"
        ) from None


audit = Commands("audit", help="The audit log.")

AUDIT_TITLES = ("TIME", "USER", "ACTION", "ABOUT", "ADDRESS", "DETAILS")


@audit.command("list")
@click.option("--user", help="Only what this account did: an id, a username or an e-mail address.")
@click.option(
    "--action",
    type=Word(Action),
    metavar="ACTION",
    help="Only this action, such as user_login; an unknown one lists them all.",
)
@click.option(
    "--since", type=point_in_time, metavar="TIME", help="Only entries at this time or later (UTC)."
)
@click.option(
    "--until", type=point_in_time, metavar="TIME", help="Only entries before this time (UTC)."
)
@limit_option(50, "entries")
def list_entries(
    user: str | None, action: str | None, since: datetime | None, until: datetime | None, limit: int
) -> Output:
    """List the newest entries; user 0 is the system, the command line or nobody known."""
    wanted = Filter(action=action, since=since, until=until)
    page = service.audit_page(runtime(), user, wanted, limit)
    data = [_audit_entry(row, account) for row, account in page]
    return Output(data, table(AUDIT_TITLES, [_audit_row(entry) for entry in data]))


def _audit_row(entry: dict[str, Any]) -> list[object]:
    about = entry["entity_name"] or entry["entity_id"]
    who = entry["user"]["username"] if entry["user"] else entry["user_id"]
    columns = entry["created_at"], who, entry["action"], about
    return [*columns, entry["ip_address"], entry["details"]]


def _audit_entry(row: Any, account: Account | None) -> dict[str, Any]:
    actor = account and {
        "id": account.id,
        "username": account.username,
        "profile": ManagedProfile().dump(account),
    }
    entry: dict[str, Any] = row._asdict()
    return entry | {"user": actor}


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
    app.cli = TopCommands(app.cli.name, context_settings=HELP)
    for command in COMMANDS:
        command.context_settings.update(HELP)  # which the commands of a group inherit
        app.cli.add_command(command)
