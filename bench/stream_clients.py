"""Keeps many event streams open, in its own process: `python -m bench.stream_clients < job.json`.

Opens one event stream per token and records when each event arrives, by the number it carries as
its first file id. Standard library only.

Protocol: one line of JSON with `port` and `tokens`; the answer `open N` once that many streams have
sent their first keep-alive. Then each line `report` is answered by one line of JSON: the streams
lost so far, and the arrivals since the last report as numbers with their monotonic times (s).
"""

import gc
import json
import re
import resource
import select
import socket
import sys
from time import monotonic
from typing import Any

PATH = "/api/v1/auth/events/storage"
MAX_OPENING = 64
OPEN_SECONDS = 180
RECEIVE_BYTES = 65_536
EVENT = re.compile(rb'"file_ids":\[(\d+)')
SIGN_OF_LIFE = b": keep-alive"
END = b"\r\n0\r\n\r\n"


class StreamClients:
    """Open streams on one epoll."""

    def __init__(self, port: int, tokens: list[str]) -> None:
        self._port = port
        self._waiting = list(reversed(tokens))
        self._poll = select.epoll()
        self._opening: set[int] = set()
        self._sockets: dict[int, socket.socket] = {}
        self.lost = 0
        self.arrivals: dict[str, list[float]] = {}

    def open(self) -> int:
        """Open all streams, a few at a time; return how many were opened."""
        end = monotonic() + OPEN_SECONDS
        while (self._waiting or self._opening) and monotonic() < end:
            while self._waiting and len(self._opening) < MAX_OPENING:
                self._connect(self._waiting.pop())
            self.read(0.1)
        return len(self._sockets) - len(self._opening)

    def read(self, seconds: float) -> bool:
        """Receive for up to `seconds`; return True if standard input is readable."""
        has_command = False
        for fd, _ in self._poll.poll(seconds):
            if fd == sys.stdin.fileno():
                has_command = True
            else:
                self._receive(fd)
        return has_command

    def listen_to_commands(self) -> None:
        """Make `read` watch standard input."""
        self._poll.register(sys.stdin.fileno(), select.EPOLLIN)

    def _connect(self, token: str) -> None:
        sock = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        lines = [f"GET {PATH} HTTP/1.1", "Host: 127.0.0.1", "User-Agent: Mozilla/5.0 (bench)"]
        lines += ["Accept: text/event-stream", f"Cookie: service_access={token}", "", ""]
        sock.sendall("\r\n".join(lines).encode())
        sock.setblocking(False)
        self._sockets[sock.fileno()] = sock
        self._opening.add(sock.fileno())
        self._poll.register(sock.fileno(), select.EPOLLIN)

    def _receive(self, fd: int) -> None:
        try:
            data = self._sockets[fd].recv(RECEIVE_BYTES)
        except OSError:
            data = b""
        now = monotonic()
        if not data or data.endswith(END):
            self.lost += 1
            self._opening.discard(fd)
            self._sockets.pop(fd).close()
            return
        if SIGN_OF_LIFE in data:
            self._opening.discard(fd)
        for number in EVENT.findall(data):
            self.arrivals.setdefault(number.decode(), []).append(now)


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the job, open the streams, then answer commands."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    gc.disable()
    clients = StreamClients(job["port"], job["tokens"])
    _write_line(f"open {clients.open()}")
    clients.listen_to_commands()
    while True:
        if clients.read(1.0):
            if sys.stdin.readline().strip() != "report":
                return
            _write_line(json.dumps({"lost": clients.lost, "arrivals": clients.arrivals}))
            clients.arrivals = {}


if __name__ == "__main__":
    main()
