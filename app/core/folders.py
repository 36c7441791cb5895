"""What a file system keeps of a folder."""

import os
from pathlib import Path


def sync(folder: Path) -> None:
    """Return once the disk has the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
