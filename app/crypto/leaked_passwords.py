"""Whether a password is known from leaks of other services, by a list on this machine.

The list has the SHA-1 of each password in upper-case hex, and how often it was seen: a folder of
range files as the k-anonymity API of Have I Been Pwned gives them (`21BD1.txt`, lines
`SUFFIX:COUNT`), or one file of lines `HASH:COUNT` in ascending order. Neither is read into memory.
"""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from app.core.thread_pool import ThreadPool

PREFIX_LENGTH = 5
MAX_LINE_BYTES = 64
# A folder's largest range has about 2,000 lines of 40 bytes.
MAX_RANGE_BYTES = 1024 * 1024
HASH = re.compile(rb"[0-9A-Fa-f]{40}:\d+")


class LeakedPasswords:
    """The list at `path`; with None, an empty list."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._pool = ThreadPool(1)

    def has(self, password: str) -> bool:
        """Return whether the list has a password, given in the form that is hashed.

        Raises: OSError; ValueError, if what is there is no such list.
        """
        if self.path is None:
            return False
        # The hash that such lists are made of; nothing depends on its security.
        name = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()
        look_up = _in_folder if self.path.is_dir() else _in_file
        return self._pool.run(look_up, self.path, name)


def _in_folder(path: Path, name: str) -> bool:
    prefix, suffix = name[:PREFIX_LENGTH], name[PREFIX_LENGTH:]
    file = path / prefix
    if not file.exists():
        file = path / f"{prefix}.txt"
    with file.open("rb") as opened:
        lines = opened.read(MAX_RANGE_BYTES).upper().split()
    # The API pads its answers with lines whose count is 0.
    return any(
        line.startswith(f"{suffix}:".encode()) and not line.endswith(b":0") for line in lines
    )


def _in_file(path: Path, name: str) -> bool:
    target = name.encode()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        found = _first_not_below(lambda at: _line_at(descriptor, at), target, size)
    finally:
        os.close(descriptor)
    return found.startswith(target) and not found.endswith(b":0")


def _first_not_below(line_at: Callable[[int], bytes], target: bytes, size: int) -> bytes:
    """Return the first line that does not sort before `target`; empty if all do."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        line = line_at(middle)
        if line and line[: len(target)] < target:
            low = middle + 1
        else:
            high = middle
    return line_at(low)


def _line_at(descriptor: int, offset: int) -> bytes:
    """Return the first line that begins at `offset` or later; empty at the end of the file."""
    start = max(offset - 1, 0)
    chunk = os.pread(descriptor, 2 * MAX_LINE_BYTES, start)
    if offset:
        chunk = chunk.partition(b"\n")[2]
    line = chunk.partition(b"\n")[0].strip()
    if line and not HASH.fullmatch(line):
        raise ValueError("it is no list of SHA-1 hashes with counts, in ascending order")
    return line.upper()
