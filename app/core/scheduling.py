"""How the kernel divides CPU time between the event loop and the compute threads beside it.

A thread of lower priority still gets time slices, of one to four milliseconds by Linux's default,
and requests that arrive meanwhile wait until they end. With shorter slices the thread gets as much
CPU time in total; only the wait gets shorter.
"""

import ctypes
import os
import platform
import struct
import sys

TIME_SLICE_NS = 500_000
MAX_NICENESS = 19
KEEP_POLICY = 0x08
# sched_setattr(2), for which most versions of the C library have no function.
_NUMBERS = {"x86_64": 314, "aarch64": 274}
_IS_64_BIT_LINUX = sys.platform == "linux" and sys.maxsize > 2**32
_SCHED_SETATTR = _NUMBERS.get(platform.machine()) if _IS_64_BIT_LINUX else None
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # struct sched_attr, its first version

_call = ctypes.CDLL(None).syscall


def lower_priority(thread: int, steps: int) -> None:
    """Make a thread nicer by `steps`, with short time slices where possible (Linux 6.12 and later).

    `thread` is its kernel thread id. What is not permitted, as in some containers, is skipped.
    """
    try:
        niceness = min(os.getpriority(os.PRIO_PROCESS, thread) + steps, MAX_NICENESS)
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
    except OSError:
        return
    if _SCHED_SETATTR is not None:
        # Older kernels ignore the length of a slice.
        wanted = _ATTRIBUTES.pack(
            _ATTRIBUTES.size, 0, KEEP_POLICY, niceness, 0, TIME_SLICE_NS, 0, 0
        )
        _call(ctypes.c_long(_SCHED_SETATTR), ctypes.c_long(thread), wanted, ctypes.c_long(0))
