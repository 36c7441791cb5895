"""The file of a SQLite database: there, and the same one as long as a process lives.

SQLite itself makes a file that is not there, so one that was lost, or a disk that is not mounted,
would look like a new installation, whose first visitor becomes its administrator.
"""

import sqlite3
import stat
from pathlib import Path

FILE_MODE = 0o644  # less the umask, as SQLite's own


class FileGone(sqlite3.OperationalError):
    """The file is not there, or another one is in its place."""


class SqliteFile:
    """The file at a path, known from its first use on."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._identity: tuple[int, int] | None = None

    @property
    def is_missing(self) -> bool:
        """Tell whether the folder is there, and no file in it."""
        return self.path.parent.is_dir() and not self.path.exists()

    def require(self) -> None:
        """Make sure that it is there, and the one this process has used so far.

        Raises: FileGone.
        """
        try:
            found = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise FileGone(f"there is no file {self.path}") from None
        except OSError:
            return  # SQLite cannot open it either, and says so
        if not stat.S_ISREG(found.st_mode):
            return  # which SQLite refuses
        identity = found.st_dev, found.st_ino
        if self._identity is None:
            self._identity = identity
        elif self._identity != identity:
            raise FileGone(
                f"{self.path} is not the file that this process began with; restart the service"
            )

    def make(self) -> None:
        """Make an empty file unless there is one; that there is no folder, SQLite says.

        Raises: OSError, which tells why the folder takes none.
        """
        if self.is_missing:
            self.path.touch(FILE_MODE)
