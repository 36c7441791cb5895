"""Functions for tests to call in a sandbox."""

import ctypes
import errno
import os
import time
from contextlib import suppress
from pathlib import Path

from app.core.errors import BadRequest, NotFound

MEBIBYTE = 2**20


class Refused(BadRequest):
    """A documented refusal."""


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
    """Make the file `began`; tell whether another one came within half a minute."""
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
    """Return the server's process and this one."""
    return [os.getppid(), os.getpid()]


def surroundings() -> dict[str, list[str]]:
    """Return the names of the variables, and what is open."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # what this folder is read by
            links.append(os.readlink(entry))
    return {"variables": sorted(os.environ), "open": links}


def behave(name: str, *arguments: str) -> object:
    """Call one of the others."""
    return globals()[name](*arguments)
