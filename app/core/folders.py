"""Durable directory changes, and the instance folder."""

import os
import stat
from pathlib import Path

from app.core.config import ConfigError


def sync(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_instance(folder: Path) -> None:
    """Create the instance folder unless it exists, accessible to this user only.

    Raises: ConfigError.
    """
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync(folder.parent)
    except OSError as error:
        raise ConfigError(f"GATEHOUSE_INSTANCE: {error.filename}: {error.strerror}") from error


def require_instance(folder: Path) -> None:
    """Require the instance folder to exist: a mistyped path must not create a second instance.

    Raises: ConfigError.
    """
    try:
        is_there = stat.S_ISDIR(folder.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_there = False
    except OSError as error:  # say, a parent folder that this user may not search
        raise ConfigError(f"GATEHOUSE_INSTANCE: {error.filename}: {error.strerror}") from error
    if not is_there:
        raise ConfigError(
            f"There is no instance at {folder}. Correct GATEHOUSE_INSTANCE; `flask prepare` makes "
            "a new instance."
        )
