"""Detects a database that answers but accepts no writes: a standby, or a read-only file."""

import os
from typing import Any

from sqlalchemy import Boolean, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from app.core.database.database import Database, Reader
from app.core.database.sqlite import FileGone, SqliteFile
from app.core.errors import DatabaseUnavailable


class DatabaseReadOnly(DatabaseUnavailable):
    """The database answers, but accepts no writes."""

    message = "The database takes no changes."


class ServerReadOnly(FunctionElement[bool]):
    """Whether the server refuses writes, as a column, so that it costs no extra round trip."""

    inherit_cache = True
    type = Boolean()


@compiles(ServerReadOnly)
def _without_a_server(*_: Any, **__: Any) -> str:
    return "0"


@compiles(ServerReadOnly, "postgresql")
def _on_postgresql(*_: Any, **__: Any) -> str:
    # This is on for a standby as well, whatever its default_transaction_read_only is.
    return "(current_setting('transaction_read_only') = 'on')"


def require_writable(database: Database, reader: Reader) -> None:
    """Make sure that the database accepts writes, without making one.

    Raises: DatabaseReadOnly.
    """
    require_writable_state(
        database, server_read_only=bool(reader.execute(select(ServerReadOnly())).scalar())
    )


def require_writable_state(database: Database, *, server_read_only: bool) -> None:
    """Refuse a server that was found to be read-only, and a file that is not writable.

    SQLite opens such a file for reading, and reports nothing before the first write; a trial write
    would take its only write lock. Nor does it report that a file it has open was deleted: what is
    written from then on is lost. Raises: DatabaseReadOnly, DatabaseUnavailable.
    """
    if database.file is not None:
        _require_writable_file(database.file)
    if server_read_only:
        raise DatabaseReadOnly


def _require_writable_file(file: SqliteFile) -> None:
    try:
        file.require()
    except FileGone as error:
        raise DatabaseUnavailable from error
    by_who_opens_it = os.access in os.supports_effective_ids
    if not os.access(file.path, os.W_OK, effective_ids=by_who_opens_it):
        raise DatabaseReadOnly
