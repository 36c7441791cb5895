"""The file of a SQLite database: it must exist, and stay the same one while a process lives.

SQLite itself creates a missing file, so a lost file, or a disk that is not mounted, would look like
a new installation, whose first visitor becomes its administrator.
"""

import sqlite3
import stat
from pathlib import Path

FILE_MODE = 0o644  # less the umask, as for a file that SQLite creates


class FileGone(sqlite3.OperationalError):
    """The file is missing, or was replaced by another one."""


class SqliteFile:
    """The file at a path; its identity is remembered from the first use on."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._identity: tuple[int, int] | None = None

    @property
    def is_missing(self) -> bool:
        """Return whether the folder exists but the file does not."""
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

    def make(self) -> None:
        """Create an empty file unless there is one; SQLite reports it if the folder is missing.

        Raises: OSError, which says why the file cannot be created.
        """
        if self.is_missing:
            self.path.touch(FILE_MODE)
