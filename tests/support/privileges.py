"""Makes file modes apply even to root."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

VERSION_3 = 0x20080522
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)
_header = (ctypes.c_uint32 * 2)(VERSION_3, 0)  # 0 is the calling thread


def _call(function: str, sets: ctypes.Array[ctypes.c_uint32]) -> None:
    if getattr(_libc, function)(ctypes.byref(_header), ctypes.byref(sets)):
        raise OSError(ctypes.get_errno(), function)


@contextmanager
def bound_by_modes() -> Iterator[None]:
    """Drop this thread's capabilities to override file modes for the block (capabilities(7))."""
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then their upper halves
    _call("capget", sets)
    before = sets[0]
    sets[0] &= ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)
    _call("capset", sets)
    try:
        yield
    finally:
        sets[0] = before
        _call("capset", sets)
