"""`flask audit`: the audit log."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from app.audit.models import Action
from app.audit_log import export as audit_export
from app.audit_log import service as audit_log
from app.audit_log.export import ExportFormat
from app.audit_log.schemas import AuditActionItem
from app.core.access import COMMAND_LINE
from app.store.paging import Paging
from app.users.cli import complete_user
from app.users.schemas import UserSummary
from app.web.cli import Commands, Output, Word, limit_option, table, write_new
from app.web.runtime import runtime

F = TypeVar("F", bound=Callable[..., Any])

group = Commands("audit", help="The audit log.")

TITLES = ("TIME", "USER", "ACTION", "ABOUT", "ADDRESS", "DETAILS")


def point_in_time(typed: str) -> datetime:
    """Read RFC 3339, or only a date; UTC unless it has an offset."""
    try:
        moment = datetime.fromisoformat(typed)
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{typed!r} is not a time; expected e.g. 2026-03-02 or 2026-03-02T09:30:00Z"
        ) from None


USER_HELP = "Only what this account did; an id, a username or an e-mail address."
ACTION_HELP = "Only this action, such as user_login; an unknown one lists them all."
SINCE_HELP = "Only entries at this time or later (UTC)."
UNTIL_HELP = "Only entries before this time (UTC)."
FILTERS = (
    click.option("--user", shell_complete=complete_user, help=USER_HELP),
    click.option("--team", help="Only what was done to this team; an id or a name."),
    click.option("--action", type=Word(Action), metavar="ACTION", help=ACTION_HELP),
    click.option("--since", type=point_in_time, metavar="TIME", help=SINCE_HELP),
    click.option("--until", type=point_in_time, metavar="TIME", help=UNTIL_HELP),
)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)


def filtered(function: F) -> F:
    """Add the options that choose entries."""
    for option in reversed(FILTERS):
        function = option(function)
    return function


@group.command("list")
@filtered
@limit_option(50, "entries")
def list_entries(limit: int, **chosen: Any) -> Output:
    """List the newest entries; user 0 is the system, the command line or somebody unknown."""
    rt = runtime()
    entry_filter = audit_log.filter_of(rt, **chosen)
    data = [_entry(entry) for entry in audit_log.list_newest(rt, entry_filter, limit)]
    return Output(data, table(TITLES, [_row(entry) for entry in data]))


@group.command("export")
@filtered
@click.option(
    "--format", "kind", type=Word(ExportFormat), default=ExportFormat.CSV, help="By default CSV."
)
@click.option("--output", type=NEW_FILE, help="By default gatehouse-audit-DATE in this folder.")
def export(kind: ExportFormat, output: Path | None, **chosen: Any) -> Output:
    """Write entries without secrets into a new file, newest first, at most 100,000."""
    rt = runtime()
    entry_filter = audit_log.filter_of(rt, **chosen)
    path = output or Path(audit_export.file_name(rt, kind))
    newest_first = Paging(audit_export.MAX_ROWS, 0, "created_at")
    write_new(path, audit_export.export(rt, COMMAND_LINE, newest_first, entry_filter, kind))
    return Output({"file": str(path)}, f"the audit log was written to {path}")


@group.command("actions")
def actions() -> Output:
    """List every action, whether it is recorded, and how often it was in 30 days."""
    data = AuditActionItem(many=True).dump(audit_log.list_actions(runtime()))
    rows = [[a["action"], a["entity_type"], a["is_recorded"], a["count_30d"]] for a in data]
    return Output(data, table(["ACTION", "ABOUT", "RECORDED", "IN 30 DAYS"], rows))


def _row(entry: dict[str, Any]) -> list[object]:
    about = entry["entity_name"] or entry["entity_id"]
    who = entry["user"]["username"] if entry["user"] else entry["user_id"]
    columns = entry["created_at"], who, entry["action"], about
    return [*columns, entry["ip_address"], entry["details"]]


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"user": entry["user"] and UserSummary().dump(entry["user"])}
