"""Checkpoints of SQLite's write-ahead log, made outside the requests.

By default SQLite makes one within whichever commit finds the log long: it copies a thousand pages
and waits for the disk twice, tens of milliseconds in which the event loop serves nobody.
"""

import logging
import sqlite3
import threading
from contextlib import closing
from typing import Any

from app.core.database.sqlite_file import SqliteFile
from app.core.native_pool import NativePool, Overloaded

log = logging.getLogger(__name__)

# A commit changes some five pages, so this is about as often as SQLite would.
COMMITS_PER_CHECKPOINT = 200
# The length of the log, 64 MB, from which commits make checkpoints after all.
MAX_PAGES = 16_000
STOP_SECONDS = 2.0


class Checkpoints:
    """Makes a checkpoint every COMMITS_PER_CHECKPOINT commits, in a native thread."""

    def __init__(self, file: SqliteFile, disk: NativePool) -> None:
        self._file = file
        self._disk = disk
        self._commits = 0
        self._is_due = threading.Event()
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    def start(self) -> None:
        """Start making checkpoints in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; from then on only commits make checkpoints."""
        self._ends = True
        self._is_due.set()
        self._thread.join(STOP_SECONDS)

    def count_commit(self) -> None:
        """Count a commit; every COMMITS_PER_CHECKPOINT of them a checkpoint is due."""
        self._commits += 1
        if self._commits >= COMMITS_PER_CHECKPOINT:
            self._commits = 0
            self._is_due.set()

    def _run(self) -> None:
        while True:
            self._is_due.wait()
            self._is_due.clear()
            if self._ends:
                return
            try:
                self._disk.run(self._make)
            except (sqlite3.Error, Overloaded) as error:
                log.warning("no checkpoint of the database was made: %s", error)
            except Exception:
                # Nothing restarts this thread.
                log.exception("no checkpoint of the database was made")

    def _make(self) -> Any:
        """Copy what no reader needs in the log any more; this waits for nothing but the disk."""
        self._file.require()
        with closing(sqlite3.connect(self._file.path)) as connection:
            return connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
