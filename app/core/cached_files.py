"""Files of which the kernel still has everything, read without waiting for a disk.

A disk may hang, so an event loop leaves files to a native thread, and two changes of thread cost
more than all the rest of a small request. What lies in the kernel's caches needs neither. Linux
tells: openat2(2) with RESOLVE_CACHED and preadv2(2) with RWF_NOWAIT fail where they would wait.
"""

import ctypes
import errno
import os
import sys
from pathlib import Path

from app.core.native_pool import NativePool

OPENAT2 = 437
AT_FDCWD = -100
RESOLVE_CACHED = 0x20
# What a call is refused with that would be refused for every file; EPERM is a sandbox's word.
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM}


class _How(ctypes.Structure):
    """Linux's struct open_how."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


if sys.platform == "linux":
    # A PyDLL keeps the interpreter's lock, since nothing here waits, but for a scanner of viruses
    # that has to allow whatever a program opens (fanotify's permission events).
    _call = ctypes.PyDLL(None, use_errno=True).syscall
    _call.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.POINTER(_How),
        ctypes.c_size_t,
    )
    _call.restype = ctypes.c_long
    # Not even the time of the last access is written, nor somebody else's lease waited for.
    _READ = _How(os.O_RDONLY | os.O_CLOEXEC | os.O_NOATIME | os.O_NONBLOCK, 0, RESOLVE_CACHED)
    _LOOK = _How(os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_CACHED)


class CachedFiles:
    """Reads files of one file system, by a thread of `disk` where the kernel would have to wait.

    So it is until a thread has read the first one: a file system on a network asks its server for
    each file that is opened, which may take for ever. It does not support RWF_NOWAIT either, by
    which it is known.
    """

    def __init__(self, disk: NativePool) -> None:
        self._disk = disk
        self._can_tell: bool | None = None  # None: not known yet

    def read(self, path: Path) -> bytes:
        """Return what is in a file.

        Raises: OSError; Overloaded.
        """
        content = _content(path) if self._can_tell else None
        return self._disk.run(self._read, path) if content is None else content

    def require(self, path: Path) -> None:
        """Insist that a file is there.

        Raises: FileNotFoundError, any other OSError; Overloaded.
        """
        if not (self._can_tell and _is_there(path)):
            self._disk.run(self._look, path)

    def _read(self, path: Path) -> bytes:
        content = path.read_bytes()
        self._learn(path)
        return content

    def _look(self, path: Path) -> None:
        path.stat()
        self._learn(path)

    def _learn(self, path: Path) -> None:
        if self._can_tell is None:
            self._can_tell = _is_told(path)


def _is_told(path: Path) -> bool | None:
    """Tell whether the kernel says of a file that it is at hand; None if this one is not."""
    try:
        descriptor = _opened(path, _READ)
        try:
            os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
        finally:
            os.close(descriptor)
    except OSError as error:
        return False if error.errno in _UNSUPPORTED else None
    except (AttributeError, NotImplementedError):  # of an older kernel, or C library
        return False
    return True


def _content(path: Path) -> bytes | None:
    """Return what is in a file; None where one would have to wait to know."""
    try:
        descriptor = _opened(path, _READ)
    except OSError:
        return None
    try:
        content = bytearray(os.fstat(descriptor).st_size)
        is_whole = os.preadv(descriptor, [content], 0, os.RWF_NOWAIT) == len(content)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return bytes(content) if is_whole else None


def _is_there(path: Path) -> bool:
    """Tell whether a file is there; False where one would have to wait to know."""
    try:
        os.close(_opened(path, _LOOK))
    except OSError:
        return False
    return True


def _opened(path: Path, how: _How) -> int:
    descriptor: int = _call(OPENAT2, AT_FDCWD, os.fsencode(path), how, ctypes.sizeof(how))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "openat2")
    return descriptor
