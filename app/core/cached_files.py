"""Files of which the kernel still has everything, read without waiting for a disk.

A disk may hang, so an event loop leaves files to a native thread, and two changes of thread cost
more than all the rest of a small request. What lies in the kernel's caches needs neither. Linux
tells: openat2(2) with RESOLVE_CACHED and preadv2(2) with RWF_NOWAIT fail where they would wait.
"""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

OPENAT2 = 437  # the number of the call, the same on all of Linux's machines but Alpha
AT_FDCWD = -100
RESOLVE_CACHED = 0x20


class _How(ctypes.Structure):
    """Linux's struct open_how."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def _to_open(flags: int) -> _How:
    return _How(flags | os.O_CLOEXEC, 0, RESOLVE_CACHED)


if sys.platform == "linux":
    # A PyDLL keeps the interpreter's lock, since nothing here waits.
    _call = ctypes.PyDLL(None).syscall
    _call.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.POINTER(_How),
        ctypes.c_size_t,
    )
    _call.restype = ctypes.c_long
    _READ, _LOOK = _to_open(os.O_RDONLY), _to_open(os.O_PATH)
else:
    _READ = _LOOK = None


def read(path: Path) -> bytes | None:
    """Return what is in a file; None where that is not known without waiting.

    So it is on an older kernel or another system, and where there is no such file.
    """
    descriptor = _open(path, _READ)
    if descriptor is None:
        return None
    try:
        return _content(descriptor)
    finally:
        os.close(descriptor)


def is_there(path: Path) -> bool:
    """Tell whether a file is known to be there; False where one would have to wait to know."""
    descriptor = _open(path, _LOOK)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def _open(path: Path, how: _How | None) -> int | None:
    if how is None:
        return None
    descriptor: int = _call(OPENAT2, AT_FDCWD, os.fsencode(path), how, ctypes.sizeof(how))
    return descriptor if descriptor >= 0 else None


def _content(descriptor: int) -> bytes | None:
    content = bytearray(os.fstat(descriptor).st_size)
    with suppress(OSError):  # not all of it is at hand, or the file system cannot tell
        if os.preadv(descriptor, [content], 0, os.RWF_NOWAIT) == len(content):
            return bytes(content)
    return None
