"""Reads files that are entirely in the kernel's caches without waiting for a disk.

A disk may hang, so an event loop leaves files to a native thread, and the two thread switches cost
more than all the rest of a small request. Cached files need neither. Linux can recognise them:
openat2(2) with RESOLVE_CACHED and preadv2(2) with RWF_NOWAIT fail where they would block.
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
# Errors that mean the calls are not supported here at all. EPERM comes from a sandbox, or from
# O_NOATIME on a file of another user.
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM}


class _How(ctypes.Structure):
    """Linux's struct open_how."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


if sys.platform == "linux":
    # A PyDLL keeps the GIL, since nothing here blocks, except on a virus scanner that has to permit
    # every open (fanotify permission events).
    _call = ctypes.PyDLL(None, use_errno=True).syscall
    _call.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.POINTER(_How),
        ctypes.c_size_t,
    )
    _call.restype = ctypes.c_long
    # O_NOATIME: no access time is written. O_NONBLOCK: no waiting for another process's file lease.
    _READ = _How(os.O_RDONLY | os.O_CLOEXEC | os.O_NOATIME | os.O_NONBLOCK, 0, RESOLVE_CACHED)
    _LOOK = _How(os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_CACHED)


class CachedFiles:
    """Reads files of one file system, in a thread of `disk` where the kernel would block.

    All reads go to a thread until one of them has shown that RWF_NOWAIT is supported. A network
    file system, which asks its server at every open and may hang, is recognised by its lack of it.
    """

    def __init__(self, disk: NativePool) -> None:
        self._disk = disk
        self._nowait_supported: bool | None = None  # None: not known yet

    def read(self, path: Path) -> bytes:
        """Return the content of a file.

        Raises: OSError; Overloaded.
        """
        content = _content(path) if self._nowait_supported else None
        return self._disk.run(self._read, path) if content is None else content

    def require(self, path: Path) -> None:
        """Require that a file exists.

        Raises: FileNotFoundError, any other OSError; Overloaded.
        """
        if not (self._nowait_supported and _is_there(path)):
            self._disk.run(self._look, path)

    def _read(self, path: Path) -> bytes:
        content = path.read_bytes()
        self._learn(path)
        return content

    def _look(self, path: Path) -> None:
        path.stat()
        self._learn(path)

    def _learn(self, path: Path) -> None:
        if self._nowait_supported is None:
            self._nowait_supported = _supports_nowait(path)


def _supports_nowait(path: Path) -> bool | None:
    """Return whether the kernel can report a file as cached; None if this file is not cached."""
    try:
        descriptor = _opened(path, _READ)
        try:
            os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
        finally:
            os.close(descriptor)
    except OSError as error:
        return False if error.errno in _UNSUPPORTED else None
    except (AttributeError, NotImplementedError):  # an older kernel, or C library
        return False
    return True


def _content(path: Path) -> bytes | None:
    """Return the content of a file; None on any error, and where reading it would block."""
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
    """Return whether a file is known to exist; False also where finding out would block."""
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
