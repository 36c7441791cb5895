"""`flask users import`."""

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import IO

import click

from app.core.access import COMMAND_LINE
from app.core.errors import BadRequest
from app.core.texts import pluralized
from app.crypto.foreign_hashes import Pepper, Way
from app.user_admin import importing as user_import
from app.user_admin.cli import group
from app.user_admin.importing import Line
from app.user_admin.schemas import ImportReport, read_imported
from app.web.cli import REFUSED_EXIT_CODE, Output, table
from app.web.runtime import runtime

__all__ = ["group"]


@group.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only say what would become of them.")
@click.option(
    "--pepper-file",
    type=click.File("rb"),
    help="What the service mixed into every password, by HMAC-SHA-512 as Flask-Security does.",
)
@click.option("--pepper-appended", is_flag=True, help="It was appended instead, as Devise does.")
def import_users(
    file: IO[bytes], is_dry_run: bool, pepper_file: IO[bytes] | None, pepper_appended: bool
) -> Output:
    """Create the accounts of FILE, one JSON object a line; - is standard input.

    Its members: name, address, verified (false), role (user), and hash, without which the account
    has no usable password; with firebase, if it is one of Firebase. Accounts that exist with this
    name and address are left as they are.
    """
    found = user_import.import_accounts(
        runtime(),
        COMMAND_LINE,
        _with_progress(file),
        read_imported,
        pepper=_pepper(pepper_file, Way.APPENDED if pepper_appended else Way.HMAC),
        is_dry_run=is_dry_run,
    )
    rows = [[line, error.public_message] for line, error in sorted(found.refused.items())]
    created = pluralized(found.created, "account", "accounts")
    existing = pluralized(found.existing, "exists", "exist")
    refused = pluralized(len(rows), "line", "lines")
    text = (
        f"{created} {'to create' if is_dry_run else 'created'}; {existing} already; "
        f"{refused} refused"
    )
    if found.formats:
        text += f"\n{table(['FORMAT', 'ACCOUNTS'], sorted(found.formats.items()))}"
    if rows:
        text = f"{table(['LINE', 'REASON'], rows)}\n{text}"
    return Output(ImportReport().dump(found), text, REFUSED_EXIT_CODE if rows else 0)


def _pepper(file: IO[bytes] | None, way: Way) -> Pepper | None:
    """Return how and what to mix in; the end of the line is no part of it."""
    if file is None:
        return None
    pepper = file.read().rstrip(b"\r\n")
    if not pepper:
        raise BadRequest("The file of --pepper-file is empty.")
    return Pepper(way, pepper)


def _with_progress(file: IO[bytes]) -> Iterator[Line]:
    """Yield the numbered lines that are not blank, and show at a terminal how far they are."""
    size = os.fstat(file.fileno()).st_size if _is_watched(file) else 0
    bar = click.progressbar(length=size, label="Importing", file=sys.stderr) if size else None
    with bar or nullcontext():
        for number, text in enumerate(file, start=1):
            if text.strip():
                yield number, text
            if bar:
                bar.update(len(text))


def _is_watched(file: IO[bytes]) -> bool:
    return file.seekable() and sys.stderr is not None and sys.stderr.isatty()
