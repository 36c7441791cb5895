"""SQLite: how connections are set up, how a writer waits, and the file, which must stay the same.

SQLite itself creates a missing file, so a lost file, or a disk that is not mounted, would look like
a new installation, whose first visitor becomes its administrator.
"""

import os
import sqlite3
import stat
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import OperationalError

from app.core.errors import DatabaseUnavailable
from app.store.db import only_reads

FILE_MODE = 0o644  # less the umask, as for a file that SQLite creates
LOCK_SECONDS = 10.0
# SQLite waits for a lock in C, where it holds up the whole event loop; beyond this, we wait.
BUSY_WAIT_MS = 5
PAUSE_SECONDS = 0.002
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=NORMAL",  # a killed process loses nothing; a power failure may
    "foreign_keys=ON",
    f"busy_timeout={BUSY_WAIT_MS}",
)


class FileGone(sqlite3.OperationalError):
    """The file is missing, or was replaced by another one."""


class SqliteFile:
    """The file at a path; its identity is remembered from the first use on."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._identity: tuple[int, int] | None = None

    @property
    def is_missing(self) -> bool:
        """Whether the folder exists but the file does not."""
        return self.path.parent.is_dir() and not self.path.exists()

    def require(self) -> None:
        """Make sure that it exists, and is the one this process has used so far.

        Raises: FileGone.
        """
        try:
            found = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise FileGone(f"there is no file {self.path}") from None
        except OSError:
            return  # SQLite cannot open it either, and says so
        if not stat.S_ISREG(found.st_mode):
            return  # SQLite refuses it
        identity = found.st_dev, found.st_ino
        if self._identity is None:
            self._identity = identity
        elif self._identity != identity:
            raise FileGone(
                f"{self.path} is not the file that this process began with; restart the service"
            )

    def is_writable(self) -> bool:
        """Return whether this process may write to it.

        SQLite opens a read-only file, and reports nothing before the first write; a trial write
        would take its only write lock. Nor does it report that a file it has open was deleted: what
        is written from then on is lost. Raises: FileGone.
        """
        self.require()
        by_who_opens_it = os.access in os.supports_effective_ids
        return os.access(self.path, os.W_OK, effective_ids=by_who_opens_it)

    def make(self) -> None:
        """Create an empty file unless there is one; SQLite reports it if the folder is missing.

        Raises: OSError, which says why the file cannot be created.
        """
        if self.is_missing:
            self.path.touch(FILE_MODE)


def install(engine: Engine) -> SqliteFile:
    """Set up every connection of an engine."""
    file = SqliteFile(str(engine.url.database))

    @event.listens_for(engine, "do_connect")
    def require_file(*_: Any) -> None:
        # If the folder is missing or inaccessible, SQLite itself says what is wrong.
        if file.path.parent.is_dir():
            file.require()

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we begin transactions, not the driver
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "begin", _begin)
    return file


def _begin(connection: Connection) -> None:
    """Take the write lock at once, unless the connection only reads.

    A transaction that started by reading and took the lock later would fail instead of waiting.
    """
    if only_reads(connection):
        return
    ends_at = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except OperationalError as error:
            if kind_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > ends_at:
                raise DatabaseUnavailable from error
            time.sleep(PAUSE_SECONDS)
        else:
            return


def kind_of(error: BaseException) -> int:
    """Return SQLite's primary result code, such as `sqlite3.SQLITE_BUSY`; 0 for any other error.

    The error may be the driver's, or SQLAlchemy's around it. The low byte of an extended result
    code is the primary one (https://sqlite.org/rescode.html).
    """
    code: int = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
    return code & 0xFF
