"""Functions that tests run in a sandbox."""

import ctypes
import errno
import os
import time
from contextlib import suppress
from pathlib import Path

from app.core.errors import BadRequest, NotFound

MEBIBYTE = 2**20


class Refused(BadRequest):
    """A documented error."""


def echo(*arguments: str) -> list[str]:
    return list(arguments)


def refuse(kind: str) -> None:
    raise {"documented": Refused, "other": NotFound}[kind]


def fail() -> None:
    raise ValueError("the reason")


def meet_a_full_disk() -> None:
    raise OSError(errno.ENOSPC, "no room")


def take_memory() -> int:
    return len(bytearray(200 * MEBIBYTE))


def take_memory_in_c() -> int:
    return len([ctypes.create_string_buffer(MEBIBYTE) for _ in range(200)])


def compute() -> None:
    while True:
        pass


def wait_for(path: str, began: str) -> bool:
    """Create the file `began`; return whether `path` appears within half a minute."""
    Path(began).touch()
    for _ in range(600):
        if Path(path).exists():
            return True
        time.sleep(0.05)
    return False


def crash() -> None:
    ctypes.string_at(0)


def server() -> int:
    return os.getppid()


def processes() -> list[int]:
    """Return the process ids of the server and of this process."""
    return [os.getppid(), os.getpid()]


def surroundings() -> dict[str, list[str]]:
    """Return the names of the environment variables, and the open files."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor that reads this folder
            links.append(os.readlink(entry))
    return {"variables": sorted(os.environ), "open": links}


def behave(name: str, *arguments: str) -> object:
    """Call one of the other functions by name."""
    return globals()[name](*arguments)
