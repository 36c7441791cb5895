"""Child processes that do not outlive their parent, whatever kills it."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, signum: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send `signum` to this process when its parent, process `parent`, dies.

    Linux ties this to the *thread* that forked: fork from a thread that lives as long as the
    process, in practice the main one. Elsewhere only a parent that is already dead is noticed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    # If the parent died between the fork and the call above, no signal would ever come.
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)


def before_exec(signum: signal.Signals = signal.SIGTERM) -> Callable[[], None]:
    """Return a `preexec_fn` that ties the program to be run to the calling process."""
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the launcher blocks what it waits for
        die_with_parent(parent, signum)

    return prepare
