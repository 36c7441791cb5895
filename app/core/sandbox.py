"""Calls a function that works on hostile input in a process of its own, with the kernel's limits.

What a decoder makes room for, how long it computes and whether it crashes can then harm nothing but
its own call. No connection, secret or setting of the service is handed to the process.
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
# What Python needs to find itself; the rest of the environment holds secrets.
ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "TZ")

# Else glibc gives the memory of each large buffer back to the kernel, which has to clear the next
# one's anew, page by page. The first limit is the highest it takes, the second more than a call may
# have. The pages are to be large ones, of which the kernel clears 512 small ones' worth at once.
# Other C libraries take no notice.
MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(1024 * 1024 * 1024),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}

# Calls come from native threads, where gevent's own would need an event loop.
_spawn: Any = get_original("os", "posix_spawn")
_waitpid: Any = get_original("os", "waitpid")
_Lock: Any = get_original("threading", "Lock")
_Socket: Any = get_original("socket", "socket")


@dataclass(frozen=True)
class Limits:
    """What one call may have: memory beside that of its module, and processor time."""

    memory_bytes: int
    cpu_seconds: int


class LimitExceeded(Exception):
    """The call needed more than it may have, or crashed."""


class SandboxFailed(Exception):
    """The call could not be made, or failed in a way nobody has thought of; the text tells."""


class Sandbox:
    """Calls `function`, written as `package.module:name`, with texts and returns what JSON can say.

    A server process imports the module once, at the first call, and is forked for every call, each
    time before the call comes. It ends with this process. `refusals` are the errors of `function`
    that are passed on.
    """

    def __init__(self, function: str, limits: Limits, refusals: Sequence[type[AppError]]) -> None:
        self._command = [sys.executable, "-P", "-m", sandbox_server.__name__, function]
        self._command += [str(limits.memory_bytes), str(limits.cpu_seconds)]
        self._refusals = {refusal.__name__: refusal for refusal in refusals}
        self._lock = _Lock()
        self._server: _Server | None = None

    def call(self, *arguments: str) -> Any:
        """Return the answer of `function`; waits for it, so it belongs into a native thread.

        Raises: one of the refusals; OSError of `function`; LimitExceeded; SandboxFailed.
        """
        question = json.dumps(arguments).encode()
        # The server may have ended, say when memory was short; a second one has not been used yet.
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
        """Return everything that is answered; empty if nobody did, who then is not asked again."""
        reading, writing = os.pipe()
        with open(reading, "rb") as pipe:
            # A file closes at once; gevent's os.close waits for the event loop.
            with open(writing, "wb") as theirs:
                server = self._send(question, theirs.fileno())
            answer = pipe.read()
        if not answer:
            self._replace(server)
        return answer

    def _send(self, question: bytes, writing: int) -> "_Server":
        """Send a question and return who got it, if still there to take it."""
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
        """Have the next question go to a new server."""
        with self._lock:
            if self._server is server:
                self._server = None
                server.reap()


class _Server:
    """A running server and the connection to it."""

    def __init__(self, command: Sequence[str]) -> None:
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.calls, theirs = (_Socket(fileno=end.detach()) for end in pair)
        weakref.finalize(self, self.calls.close)  # which ends the server
        with theirs:
            for end in (self.calls, theirs):
                end.setblocking(True)
            self._pid = _spawn(
                command[0],
                command,
                _environment(),
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
                setpgroup=0,  # Ctrl-C is for the service, which then ends it
            )

    def reap(self) -> None:
        """Let go of a server that is gone."""
        self.calls.close()
        with suppress(ChildProcessError):  # somebody else has
            _waitpid(self._pid, 0)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, **MEMORY, "PYTHONPATH": os.pathsep.join(paths)}
