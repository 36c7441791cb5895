"""`flask audit`: who did what."""

from datetime import UTC, datetime
from typing import Any

import click

from app.administration import service
from app.audit.models import Action
from app.audit.queries import Filter
from app.users.models import Account
from app.users.schemas import ManagedProfile
from app.web.cli import Commands, Output, Word, table
from app.web.runtime import runtime
from app.web.schema import timestamp


class Timestamp(click.ParamType[datetime]):
    """A point in time: RFC 3339, or only a date; UTC unless it has an offset."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return an aware datetime."""
        try:
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a time; expected e.g. 2026-03-02 or 2026-03-02T09:30:00Z",
                param,
                ctx,
            )


group = Commands("audit", help="The audit log.")

TITLES = ("TIME", "USER", "ACTION", "ABOUT", "ADDRESS", "DETAILS")


@group.command("list")
@click.option("--user", help="Only what this account did: an id, a username or an e-mail address.")
@click.option(
    "--action",
    type=Word(Action),
    metavar="ACTION",
    help="Only this action, such as user_login; an unknown one lists them all.",
)
@click.option("--since", type=Timestamp(), help="Only entries at this time or later (UTC).")
@click.option("--until", type=Timestamp(), help="Only entries before this time (UTC).")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="How many of the newest entries to show, at most 10000.",
)
def list_entries(
    user: str | None, action: str | None, since: datetime | None, until: datetime | None, limit: int
) -> Output:
    """List the newest entries; user 0 is the system, the command line or nobody known."""
    wanted = Filter(action=action, since=since, until=until)
    page = service.audit_page(runtime(), user, wanted, limit)
    data = [_entry(row, account) for row, account in page]
    return Output(data, table(TITLES, [_row(entry) for entry in data]))


def _row(entry: dict[str, Any]) -> list[object]:
    about = entry["entity_name"] or entry["entity_id"]
    who, address = _name(entry), entry["ip_address"]
    return [entry["created_at"], who, entry["action"], about, address, entry["details"]]


def _entry(row: Any, account: Account | None) -> dict[str, Any]:
    return {
        "id": row.id,
        "user_id": row.user_id,
        "user": _user(account) if account else None,
        "action": row.action,
        "entity_type": row.entity_type,
        "entity_id": row.entity_id,
        "entity_name": row.entity_name,
        "details": row.details,
        "ip_address": row.ip_address,
        "user_agent": row.user_agent,
        "created_at": timestamp(row.created_at),
    }


def _user(account: Account) -> dict[str, Any]:
    shown = ManagedProfile().dump(account)
    return {"id": account.id, "username": account.username, "profile": shown}


def _name(entry: dict[str, Any]) -> str | int:
    name: str | int = entry["user"]["username"] if entry["user"] else entry["user_id"]
    return name
