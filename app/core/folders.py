"""Folders as the file system keeps them, and that of the instance."""

import os
import stat
from pathlib import Path

from app.core.environment import ConfigError


def sync(folder: Path) -> None:
    """Return once the disk has the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_instance(folder: Path) -> None:
    """Make the folder of an instance unless it is there, for this user alone.

    Raises: ConfigError.
    """
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync(folder.parent)
    except OSError as error:
        raise ConfigError(f"GATEHOUSE_INSTANCE: {error.filename}: {error.strerror}") from error


def require_instance(folder: Path) -> None:
    """Insist on the folder of an instance: a mistyped name must not become another one.

    Raises: ConfigError.
    """
    try:
        is_there = stat.S_ISDIR(folder.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_there = False
    except OSError as error:  # one of the folders above it is closed to this user
        raise ConfigError(f"GATEHOUSE_INSTANCE: {error.filename}: {error.strerror}") from error
    if not is_there:
        raise ConfigError(
            f"There is no instance at {folder}. Correct GATEHOUSE_INSTANCE; `flask prepare` makes "
            "a new instance."
        )
