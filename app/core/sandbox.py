"""Calls a function that handles hostile input in a process of its own, under kernel limits.

However much memory a decoder allocates, however long it computes, and even if it crashes, it harms
only its own call. The process gets no connection, secret or setting of the service.
"""

import json
import os
import socket
import sys
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gevent.monkey import get_original

from app.core import sandbox_server
from app.core.errors import AppError

ROOT = Path(__file__).resolve().parents[2]
# What Python needs to start; the rest of the environment holds secrets.
ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "TZ")

# By default glibc returns the memory of each large buffer to the kernel, which then has to zero the
# next buffer page by page. The first threshold is the highest that glibc accepts, the second more
# than a call may use. With huge pages the kernel zeroes 512 small ones' worth at once. Other C
# libraries ignore these variables.
MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(1024 * 1024 * 1024),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}

# Calls come from native threads, where gevent's versions would need an event loop.
_spawn: Any = get_original("os", "posix_spawn")
_waitpid: Any = get_original("os", "waitpid")
_Lock: Any = get_original("threading", "Lock")
_Socket: Any = get_original("socket", "socket")


@dataclass(frozen=True)
class Limits:
    """What one call may use: memory on top of that of its module, and CPU time."""

    memory_bytes: int
    cpu_seconds: int


class LimitExceeded(Exception):
    """The call exceeded a limit, or crashed."""


class SandboxFailed(Exception):
    """The call could not be made, or failed in an unexpected way; the text says how."""


class Sandbox:
    """Calls `function`, written as `package.module:name`, with strings; returns a JSON value.

    A server process imports the module once, at the first call, and forks for every call, ahead of
    it. It ends with this process. `refusals` are the errors of `function` that are passed on.
    """

    def __init__(self, function: str, limits: Limits, refusals: Sequence[type[AppError]]) -> None:
        self._command = [sys.executable, "-P", "-m", sandbox_server.__name__, function]
        self._command += [str(limits.memory_bytes), str(limits.cpu_seconds)]
        self._refusals = {refusal.__name__: refusal for refusal in refusals}
        self._lock = _Lock()
        self._server: _Server | None = None

    def call(self, *arguments: str) -> Any:
        """Return the result of `function`; this blocks, so run it in a native thread.

        Raises: one of the refusals; OSError of `function`; LimitExceeded; SandboxFailed.
        """
        question = json.dumps(arguments).encode()
        # The server may have died, e.g. when memory was short; the retry gets a fresh one.
        answer = self._ask(question) or self._ask(question)
        if not answer:
            raise SandboxFailed("no process to call it in")
        if answer == sandbox_server.BEGUN:
            raise LimitExceeded
        return self._judged(json.loads(answer))

    def _judged(self, answer: dict[str, Any]) -> Any:
        if "result" in answer:
            return answer["result"]
        if number := answer["errno"]:
            raise OSError(number, os.strerror(number))
        if refusal := self._refusals.get(answer["error"]):
            raise refusal
        raise SandboxFailed(answer["reason"])

    def _ask(self, question: bytes) -> bytes:
        """Return the whole answer; if there was none, return b"" and discard the server."""
        reading, writing = os.pipe()
        with open(reading, "rb") as pipe:
            # A file object closes at once; gevent's os.close waits for the event loop.
            with open(writing, "wb") as theirs:
                server = self._send(question, theirs.fileno())
            answer = pipe.read()
        if not answer:
            self._replace(server)
        return answer

    def _send(self, question: bytes, writing: int) -> "_Server":
        """Send a question; return the server it was sent to, which may have died."""
        with self._lock:
            try:
                if self._server is None:
                    self._server = _Server(self._command)
                with suppress(BrokenPipeError, ConnectionResetError):
                    socket.send_fds(self._server.calls, [question], [writing])
            except OSError as error:
                raise SandboxFailed(str(error)) from error
            return self._server

    def _replace(self, server: "_Server") -> None:
        """Make the next question go to a new server."""
        with self._lock:
            if self._server is server:
                self._server = None
                server.reap()


class _Server:
    """A running server process and the socket to it."""

    def __init__(self, command: Sequence[str]) -> None:
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.calls, theirs = (_Socket(fileno=end.detach()) for end in pair)
        weakref.finalize(self, self.calls.close)  # the server ends once this is closed
        with theirs:
            for end in (self.calls, theirs):
                end.setblocking(True)
            self._pid = _spawn(
                command[0],
                command,
                _environment(),
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
                setpgroup=0,  # Ctrl-C is meant for the service, which then ends this one
            )

    def reap(self) -> None:
        """Clean up after a server that has died."""
        self.calls.close()
        with suppress(ChildProcessError):  # reaped elsewhere already
            _waitpid(self._pid, 0)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, **MEMORY, "PYTHONPATH": os.pathsep.join(paths)}
