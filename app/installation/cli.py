"""`flask prepare`, `doctor`, `overview`, `cleanup`, `keys` and `storage bootstrap`."""

import logging
from typing import Any

import click
from flask.cli import with_appcontext

from app import __version__
from app.core import folders
from app.core.access import COMMAND_LINE
from app.core.texts import pluralized
from app.installation import preparation, secret_keys
from app.installation.cleanup import clean_up_now, in_words
from app.installation.doctor import examine
from app.installation.machine_checks import Level
from app.installation.overview import overview as make_overview
from app.installation.schemas import OverviewData
from app.storage_policies import service as storage_policies
from app.storage_policies.cli import group as storage
from app.web.cli import (
    Command,
    Commands,
    Output,
    colored,
    limit_option,
    printable,
    progress,
    table,
)
from app.web.runtime import runtime

log = logging.getLogger(__name__)

LEVEL_COLORS: dict[str, str] = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


@click.command("prepare", cls=Command, requires_instance=False)
@click.option(
    "--new-keys", is_flag=True, help="Create new keys because the old ones are lost for good."
)
@with_appcontext
def prepare(new_keys: bool) -> Output:
    """Create the instance if it is new, and bring the database up to date.

    Local storage is set up as well, where that is configured. --new-keys is for a key file that is
    lost although its database is in use: everybody is signed out, and the stored secrets can no
    longer be read.
    """
    rt = runtime()
    preparation.create_if_missing(rt, new_keys=new_keys)
    progress("bringing the database up to date")
    is_ours = preparation.migrate(rt)
    if not is_ours:
        log.warning("the database was migrated by a newer version and is left as it is")
    elif rt.config.storage_bootstrap == "local":
        storage_policies.bootstrap(rt)
    return Output({"prepared": is_ours})


@click.command("doctor", cls=Command, requires_instance=False)
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings too.")
@with_appcontext
def doctor(strict: bool) -> Output:
    """Check everything the service depends on; exit 1 if something fails."""
    rt = runtime()
    folders.require_instance(rt.config.instance)
    progress("checking")
    findings = examine(rt)
    bad = {Level.FAIL, Level.WARN} if strict else {Level.FAIL}
    is_well = not any(finding.level in bad for finding in findings.values())
    checks: list[dict[str, str | None]] = [
        {
            "check": name,
            "level": finding.level,
            "message": finding.message,
            "remedy": finding.remedy,
        }
        for name, finding in findings.items()
    ]
    lines = [
        colored(f"{finding.level:<4}", fg=LEVEL_COLORS[finding.level])
        + f"  {name}: {printable(finding.message_with_remedy)}"
        for name, finding in findings.items()
    ]
    return Output(
        {"ok": is_well, "checks": checks}, "\n".join(lines), exit_code=0 if is_well else 1
    )


@click.command("overview", cls=Command)
@click.option(
    "--days",
    type=click.IntRange(1, 90),
    default=7,
    show_default=True,
    help="How many days to show, up to today.",
)
@click.option("--timezone", default="UTC", show_default=True, help="An IANA time zone.")
@limit_option(8, "events")
@with_appcontext
def overview(days: int, timezone: str, limit: int) -> Output:
    """Show numbers, health, what happened each day and what happened last."""
    data: dict[str, Any] = OverviewData().dump(make_overview(runtime(), days, timezone, limit))
    numbers = [[name, value] for name, value in data["stats"].items()]
    days_shown = [list(report.values()) for report in data["daily_reports"]]
    titles = [name.replace("_", " ").upper() for name in data["daily_reports"][0]]
    found = data["system_health"]
    text = [f"Gatehouse {__version__}: {found['status']}. {found['summary']}"]
    text += [table(["NUMBER OF", ""], numbers), table(titles, days_shown)]
    return Output(data, "\n\n".join(text))


@click.command("cleanup", cls=Command)
@with_appcontext
def cleanup() -> Output:
    """Delete what has expired: sessions, links, old mails, archived teams and audit entries.

    Files left behind by interrupted avatar uploads are deleted too.
    """
    progress("deleting what has expired")
    cleaned = clean_up_now(runtime(), COMMAND_LINE)
    return Output(cleaned, f"deleted {in_words(cleaned)}")


secret_key_commands = Commands("keys", help="The keys that sign tokens and encrypt secrets.")


@secret_key_commands.command("list")
def list_keys() -> Output:
    """List the keys, starting with the one that signs."""
    data = secret_keys.list_keys(runtime())
    titles = ["ID", "CREATED", "RETIRED", "SIGNS"]
    return Output(data, table(titles, [list(entry.values()) for entry in data]))


@secret_key_commands.command("rotate")
def rotate() -> Output:
    """Sign and encrypt with a new key; what older keys signed or encrypted remains valid.

    Exit 1 when a stored secret cannot be read with any key.
    """
    progress("making a key, and encrypting stored secrets anew with it")
    data = secret_keys.rotate_keys(runtime(), COMMAND_LINE)
    secrets = pluralized(data["resealed"], "secret was", "secrets were")
    text = f"key {data['key']['id']} signs now; {secrets} encrypted anew"
    if unreadable := data["unreadable"]:
        text += f", {unreadable} cannot be read with any key: see `flask doctor`"
    return Output(data, text, exit_code=1 if unreadable else 0)


@storage.command("bootstrap")
def bootstrap() -> Output:
    """Complete the default storage route and assign everybody without a group; may be run again."""
    data = preparation.bootstrap_storage(runtime(), COMMAND_LINE)
    place = f"policy {data['policy_id']}, group {data['group_id']}"
    return Output(data, f"{place}; the installation is {data['setup_state']}")
