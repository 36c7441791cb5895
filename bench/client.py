"""The load generator, run as a process of its own: `python -m bench.client < job.json`.

One thread, one epoll, keep-alive connections in a closed loop. It parses just enough of every
answer to check it: status line, length and a substring of the body. Standard library only.

Protocol on standard output: a line `begin` when the measured window starts, `end` when it is over,
then one line of JSON. An answer counts towards the rate if it arrives within the window. Its
latency counts even if it arrives later, so that a starved request shows in p99.
"""

import gc
import itertools
import json
import re
import resource
import select
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

DRAIN_SECONDS = 30.0
RECEIVE_BYTES = 65536
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
LAST_CHUNK = b"\r\n0\r\n\r\n"
CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)


class Request:
    """A request's bytes, and the status and text that its answer must have."""

    __slots__ = ("expect", "label", "raw", "status")

    def __init__(self, label: str, raw: str, status: int, expect: str) -> None:
        self.label = label
        self.raw = raw.encode()
        self.status = b"HTTP/1.1 %d" % status
        self.expect = expect.encode()


class Connection:
    """One client: its socket, the request in flight and, in a chain, its own tokens."""

    __slots__ = ("chain", "parts", "request", "sock", "started")

    def __init__(self, chain: "Chain | BodyChain | None") -> None:
        self.sock: socket.socket | None = None
        self.request: Request | None = None
        self.started = 0.0
        self.parts = b""
        self.chain = chain


class Chain:
    """Requests that carry the cookies of the previous answer (rotating refresh tokens)."""

    def __init__(self, template: dict[str, Any], cookies: dict[str, str]) -> None:
        self._request = Request(**template)
        self._template = template["raw"]
        self._cookies = cookies
        names = "|".join(re.escape(name) for name in cookies)
        pattern = rf"\r\nset-cookie: *({names})=([^;\r]+)"
        self._set_cookie = re.compile(pattern.encode(), re.IGNORECASE)

    def render(self) -> Request:
        """Return the next request with the newest cookies."""
        cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        self._request.raw = self._template.replace("@@COOKIES@@", cookie).encode()
        return self._request

    def learn(self, data: bytes, head_end: int) -> bool:
        """Take the new cookies from an answer's head; return False if one was not renewed."""
        found = self._set_cookie.findall(data, 0, head_end)
        fresh = {name.decode(): value.decode() for name, value in found}
        renewed = all(fresh.get(name, old) != old for name, old in self._cookies.items())
        self._cookies |= fresh
        return renewed and len(fresh) == len(self._cookies)


class BodyChain:
    """Like Chain, for a token that requests and answers carry in a field of their bodies."""

    def __init__(self, template: dict[str, Any], tokens: dict[str, str]) -> None:
        ((name, self._token),) = tokens.items()
        self._request = Request(**template)
        self._head, _, self._body = template["raw"].partition("\r\n\r\n")
        self._field = re.compile(rf'"{re.escape(name)}" *: *"([^"]+)"'.encode())

    def render(self) -> Request:
        """Return the next request with the newest token."""
        body = self._body.replace("@@TOKEN@@", self._token)
        head = re.sub(r"(?<=\r\nContent-Length: )\d+", str(len(body)), self._head)
        self._request.raw = f"{head}\r\n\r\n{body}".encode()
        return self._request

    def learn(self, data: bytes, head_end: int) -> bool:
        """Take the new token from an answer's body; return False if it was not renewed."""
        found = self._field.search(data, head_end)
        old, self._token = self._token, found[1].decode() if found else self._token
        return self._token != old


class Tally:
    """The results: counts, failures by reason, latencies in seconds by label."""

    def __init__(self) -> None:
        self.counted = 0
        self.sent = 0
        self.failures: Counter[str] = Counter()
        self.first_failure = ""
        self.latencies: dict[str, list[float]] = {}

    def fail(self, reason: str, detail: bytes = b"") -> None:
        """Count a failure; keep the text of the first."""
        self.failures[reason] += 1
        if not self.first_failure:
            self.first_failure = f"{reason}: {detail[:400].decode('utf-8', 'replace')}"


class Generator:
    """Drives all connections until the time or the number of requests is used up."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._address = (job["host"], job["port"])
        self._warmup, self._duration = float(job["warmup"]), float(job["duration"])
        self._limit = job["limit"] or sys.maxsize
        self._epoll = select.epoll()
        self._by_fd: dict[int, Connection] = {}
        self._requests: Iterator[Request] = itertools.cycle(Request(**r) for r in job["requests"])
        chains = job["chains"] or [None] * job["clients"]
        kind = BodyChain if job["chained_by"] == "body" else Chain
        self._connections = [Connection(c and kind(job["template"], c)) for c in chains]
        self._sending = True
        self._counting = False
        self.tally = Tally()

    def run(self, mark: Callable[[str], None]) -> tuple[float, float]:
        """Generate the load; return the window's length and this process's CPU in it (seconds)."""
        for connection in self._connections:
            self._connect(connection)
            self._send(connection)
        self._loop(perf_counter() + self._warmup)
        self._counting = True
        mark("begin")
        began, cpu = perf_counter(), _cpu_seconds()
        self._loop(began + self._duration)
        seconds, cpu = perf_counter() - began, _cpu_seconds() - cpu
        mark("end")
        self._sending = self._counting = False
        self._loop(perf_counter() + DRAIN_SECONDS)
        for _ in self._pending():
            self.tally.fail("no answer")
        return seconds, cpu

    def stop(self) -> None:
        """End the window now (for a background load of open length)."""
        self._duration = 0.0
        self._limit = 0

    def _pending(self) -> list[Connection]:
        return [c for c in self._connections if c.request is not None]

    def _loop(self, until: float) -> None:
        poll, by_fd, receive = self._epoll.poll, self._by_fd, self._receive
        while (left := until - perf_counter()) > 0:
            for fd, _ in poll(min(left, 0.25)):
                receive(by_fd[fd])
            if not (self._sending and self._limit) and not self._pending():
                return

    def _connect(self, connection: Connection) -> None:
        if connection.sock is not None:
            del self._by_fd[connection.sock.fileno()]
            connection.sock.close()
        connection.sock = sock = socket.create_connection(self._address, timeout=10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self._by_fd[sock.fileno()] = connection
        self._epoll.register(sock.fileno(), select.EPOLLIN)

    def _send(self, connection: Connection) -> None:
        """Send the next request; it is much smaller than a socket buffer, so one call suffices."""
        if not self._sending or self._limit <= 0:
            connection.request = None
            return
        self._limit -= 1
        chain = connection.chain
        connection.request = request = next(self._requests) if chain is None else chain.render()
        connection.parts = b""
        self.tally.sent += 1
        connection.started = perf_counter()
        connection.sock.send(request.raw)  # type: ignore[union-attr]

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(RECEIVE_BYTES)  # type: ignore[union-attr]
        except OSError as error:
            return self._lost(connection, type(error).__name__)
        if not data:
            return self._lost(connection, "closed by the server")
        if connection.parts:
            data = connection.parts + data
        head_end = data.find(b"\r\n\r\n")
        length = head_end > 0 and LENGTH.search(data, 0, head_end)
        if length:
            is_whole = len(data) >= head_end + 4 + int(length[1])
        else:
            is_whole = head_end > 0 and _is_whole_in_chunks(data, head_end)
        if is_whole:
            return self._answered(connection, data, head_end)
        connection.parts = data
        return None

    def _answered(self, connection: Connection, data: bytes, head_end: int) -> None:
        request, tally = connection.request, self.tally
        if request is None:
            return tally.fail("answer without a request", data)
        elapsed = perf_counter() - connection.started
        if not data.startswith(request.status):
            tally.fail("status", data)
        elif data.find(request.expect, head_end) < 0:
            tally.fail("body", data)
        elif connection.chain and not connection.chain.learn(data, head_end):
            tally.fail("tokens not renewed", data)
        else:
            tally.counted += self._counting
            if self._counting or not self._sending:
                tally.latencies.setdefault(request.label, []).append(elapsed)
        if CLOSE.search(data, 0, head_end):
            self._connect(connection)
        return self._send(connection)

    def _lost(self, connection: Connection, reason: str) -> None:
        if connection.request is not None:
            self.tally.fail(reason)
        self._connect(connection)
        self._send(connection)


def _is_whole_in_chunks(data: bytes, head_end: int) -> bool:
    """Return whether the last chunk has arrived; no answer contains its marker as text."""
    return data.endswith(LAST_CHUNK) and CHUNKED.search(data, 0, head_end) is not None


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _mark(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read a job from standard input, run it, write the result."""
    job = json.load(sys.stdin)
    if job["host"] != "127.0.0.1":
        sys.exit("only 127.0.0.1 may be loaded")
    generator = Generator(job)
    signal.signal(signal.SIGTERM, lambda *_: generator.stop())
    gc.disable()  # a collection would show up as server latency
    seconds, cpu = generator.run(_mark)
    tally = generator.tally
    result = {
        "counted": tally.counted,
        "sent": tally.sent,
        "seconds": seconds,
        "cpu": cpu,
        "failures": tally.failures,
        "first_failure": tally.first_failure,
        "latencies": {k: [round(s * 1e6) for s in v] for k, v in tally.latencies.items()},
    }
    _mark(json.dumps(result))


if __name__ == "__main__":
    main()
