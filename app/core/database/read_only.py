"""Whether the database takes changes: a standby answers as well, and a file that is read only."""

import os
from typing import Any

from sqlalchemy import Boolean, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from app.core.database.database import Database, Reader
from app.core.database.sqlite_file import FileGone, SqliteFile
from app.core.errors import DatabaseUnavailable


class DatabaseReadOnly(DatabaseUnavailable):
    """The database answers, and takes no changes."""

    message = "The database takes no changes."


class ServerReadOnly(FunctionElement[bool]):
    """Whether the server refuses changes, as a column: it costs no round trip of its own."""

    inherit_cache = True
    type = Boolean()


@compiles(ServerReadOnly)
def _without_a_server(*_: Any, **__: Any) -> str:
    return "0"


@compiles(ServerReadOnly, "postgresql")
def _on_postgresql(*_: Any, **__: Any) -> str:
    # On a standby as well, whatever the default of its transactions is.
    return "(current_setting('transaction_read_only') = 'on')"


def require_writable(database: Database, reader: Reader) -> None:
    """Make sure that the database takes changes, without making one.

    Raises: DatabaseReadOnly.
    """
    judge(database, server_read_only=bool(reader.execute(select(ServerReadOnly())).scalar()))


def judge(database: Database, *, server_read_only: bool) -> None:
    """Refuse a server that was found to take no changes, and a file that may not be written.

    SQLite opens such a file for reading, and says nothing before the first change. To try one would
    take its only write lock. Nor does it say that a file it has open is gone: what is written from
    then on is lost. Raises: DatabaseReadOnly, DatabaseUnavailable.
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
