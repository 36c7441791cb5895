"""The server of a sandbox: `python -m app.core.sandbox_server package.module:name BYTES SECONDS`.

Standard input is a socket. Each message is a JSON list of strings, the arguments of a call, and
carries a file descriptor to write the answer to.
"""

import gc
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

TAKEN = b"!"  # from a forked process to its server: it has received a call
BEGUN = b"\n"  # the first byte of every answer; nothing follows if the call did not survive
MAX_CALL_BYTES = 64 * 1024
# Below the priority of short requests and of password hashing (`native_pool.py`).
NICENESS = 15


def serve(function: Callable[..., Any], memory_bytes: int, cpu_seconds: int) -> None:
    """Fork for every call until the caller is gone.

    The process for the next call is forked in advance, so that the call need not wait for it.
    """
    with suppress(OSError):  # e.g. forbidden in a container
        os.nice(NICENESS)
    signal.signal(signal.SIGCHLD, _reap)
    gc.disable()  # a call leaves little to collect, and collecting would copy shared pages
    calls = socket.socket(fileno=sys.stdin.fileno())
    while True:
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(reading)
            _limit(memory_bytes, cpu_seconds)
            question, descriptors, _, _ = socket.recv_fds(calls, MAX_CALL_BYTES, 1)
            if not question:
                os._exit(0)
            try:
                os.write(writing, TAKEN)
            except BrokenPipeError:
                os._exit(1)  # the server was killed; the caller retries with another one
            os.close(writing)
            calls.close()
            _answer(function, json.loads(question), descriptors[0])
        os.close(writing)
        is_taken = os.read(reading, 1) == TAKEN
        os.close(reading)
        if not is_taken:
            return


def _reap(*_: object) -> None:
    """Reap the processes that have ended; their CPU time counts as the server's from then on."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _limit(memory_bytes: int, cpu_seconds: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        has = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + memory_bytes, has + memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(function: Callable[..., Any], arguments: Sequence[str], descriptor: int) -> NoReturn:
    # Libraries report damaged input in megabytes of warnings.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    os.write(descriptor, BEGUN)
    answer: dict[str, Any]
    try:
        answer = {"result": function(*arguments)}
    except MemoryError:
        os._exit(1)
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = repr(error.__cause__ or error)
        answer = {"error": type(error).__name__, "errno": number, "reason": reason}
    os.write(descriptor, json.dumps(answer).encode())
    os.close(descriptor)  # so that nobody waits while this process frees its memory
    os._exit(0)


def main(arguments: Sequence[str]) -> None:
    """Serve the function that the arguments name."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # whatever the parent may have left open
    function, memory_bytes, cpu_seconds = arguments
    module, _, name = function.partition(":")
    serve(getattr(import_module(module), name), int(memory_bytes), int(cpu_seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
