"""Reads an event stream from its socket, as a page does."""

import json
import select
import socket
import time
from typing import Any

from tests.support.api import BASE
from tests.support.live import TIMEOUT_SECONDS, LiveClient

PATH = f"{BASE}/auth/events/storage"


class OpenStream:
    """One stream of a running service, opened with a client's cookies.

    It uses a connection of its own, or with `shares` the client's. Nothing is read in the
    background: a stream left alone is a slow reader.
    """

    def __init__(
        self, client: LiveClient, *, buffer: int | None = None, shares: bool = False
    ) -> None:
        self._socket = client.socket if shares else client.service.dial(buffer)
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        request = f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n\r\n"
        self._socket.sendall(request.encode())
        self._bytes = b""
        self._text = b""
        self.has_ended = False
        self.comments = 0
        self._events: list[dict[str, Any]] = []
        head = self._head()
        self.status = int(head[0].split()[1])
        self.headers = {
            name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:])
        }
        if self.status == 200:
            self._take_chunks()

    def __enter__(self) -> "OpenStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def shut_down(self) -> None:
        """Shut down the sending side only."""
        self._socket.shutdown(socket.SHUT_WR)

    @property
    def local_port(self) -> int:
        return int(self._socket.getsockname()[1])

    def opened(self) -> "OpenStream":
        """Assert that the stream was opened, and wait for its first comment."""
        assert self.status == 200, self.headers
        self.wait(lambda: self.comments, "the first comment")
        return self

    def wait(self, condition: Any, what: str, seconds: float = TIMEOUT_SECONDS) -> Any:
        """Read until a condition holds; return its value."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert not self.has_ended, f"the stream ended, and not: {what}"
            assert time.monotonic() < deadline, f"waited {seconds:g} s for: {what}"
            self._read(deadline - time.monotonic())
        return value

    def event(self, seconds: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        """Return the next event."""
        self.wait(lambda: self._events, "an event", seconds)
        return self._events.pop(0)

    def change(self, seconds: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        """Return the next event about a change, skipping those that make a page reload all."""
        while (event := self.event(seconds))["kind"] == "sync.required":
            pass
        return event

    def events_for(self, seconds: float) -> list[dict[str, Any]]:
        """Return the events that arrive within this time, or before the stream ends."""
        deadline = time.monotonic() + seconds
        while not self.has_ended and (left := deadline - time.monotonic()) > 0:
            self._read(left)
        events, self._events = self._events, []
        return events

    def wait_for_end(self, seconds: float = TIMEOUT_SECONDS) -> None:
        """Assert that the service ends the stream in time."""
        deadline = time.monotonic() + seconds
        while not self.has_ended:
            assert time.monotonic() < deadline, f"the stream is still open after {seconds:g} s"
            self._read(deadline - time.monotonic())

    def _head(self) -> list[str]:
        while b"\r\n\r\n" not in self._bytes:
            received = self._socket.recv(65_536)
            assert received, "the service hung up"
            self._bytes += received
        head, _, self._bytes = self._bytes.partition(b"\r\n\r\n")
        return head.decode().split("\r\n")

    def _read(self, seconds: float) -> None:
        if not select.select([self._socket], [], [], max(0.0, min(seconds, 0.5)))[0]:
            return
        try:
            received = self._socket.recv(1 << 20)
        except ConnectionResetError:
            received = b""
        if not received:
            self.has_ended = True
            return
        self._bytes += received
        self._take_chunks()

    def _take_chunks(self) -> None:
        while True:
            size, separator, rest = self._bytes.partition(b"\r\n")
            if not separator:
                break
            length = int(size, 16)
            if len(rest) < length + 2:
                break
            if length == 0:
                self.has_ended = True
                self._bytes = b""
                break
            self._text += rest[:length]
            self._bytes = rest[length + 2 :]
        *frames, self._text = self._text.split(b"\n\n")
        for frame in frames:
            if frame == b": keep-alive":
                self.comments += 1
                continue
            name, _, data = frame.partition(b": ")
            assert name == b"data", frame
            self._events.append(json.loads(data))
