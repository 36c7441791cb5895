"""Children that do not outlive their parent, whatever kills it."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, signum: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send `signum` to this process when the process `parent` is gone.

    Linux ties this to the *thread* that forked: fork from a thread that lives as long as the
    process, in practice the main one. Elsewhere there is no such call and nothing happens.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    # The parent may have died between the fork and the call above: nobody would tell us any more.
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)


def before_exec(signum: signal.Signals = signal.SIGTERM) -> Callable[[], None]:
    """Return a `preexec_fn` that ties the program about to run to the calling process."""
    parent = os.getpid()
    return lambda: die_with_parent(parent, signum)
