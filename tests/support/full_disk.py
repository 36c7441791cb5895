"""A small disk that is quickly full; only root can mount one."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOM = 256 * 1024


@contextmanager
def small(folder: Path) -> Iterator[Path]:
    """Mount a small file system at `folder`; skip the test where that is not possible."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    try:
        yield folder
    finally:  # a leftover mount would make the clean-up of temporary folders fail
        subprocess.run(["umount", str(folder)], check=True)


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb", buffering=0) as stream, suppress(OSError):
        while True:
            stream.write(b"x" * 4096)
