"""The load generator: one greenlet a client, each with a connection kept alive.

It runs in a process of its own and parses just enough of every answer to check it: status line,
length and a substring of the body. An answer counts towards the rate if it arrives within the
measured window. Its latency counts even if it arrives later, so that a starved request shows in
p99.
"""

import gc
import itertools
import re
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from time import perf_counter

import gevent
from gevent import socket

from bench.load import Job, Request, Run

DRAIN_SECONDS = 30.0
RECEIVE_BYTES = 65536
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
LAST_CHUNK = b"\r\n0\r\n\r\n"


class WrongAnswer(Exception):
    """An answer is not the expected one."""


class Generator:
    """Drives all clients until the time or the number of requests is used up."""

    def __init__(self, job: Job) -> None:
        self._job, self._left = job, job.limit or 1 << 60
        self._is_sending, self._is_counting = True, False
        self._requests = itertools.cycle(job.requests)
        self._run = Run(0, 0.0, 0, "", [])

    def run(self, pipe: Connection) -> Run:
        """Generate the load; tell `pipe` when the measured window begins and ends."""
        chains: Sequence[dict[str, str] | None] = self._job.chains or [None] * self._job.clients
        clients = [gevent.spawn(self._client, chain) for chain in chains]
        gevent.joinall(clients, timeout=self._job.warmup)
        self._is_counting = True
        pipe.send("begin")
        began = perf_counter()
        gevent.joinall(clients, timeout=self._job.duration)
        self._run.seconds = perf_counter() - began
        pipe.send("end")
        self._is_sending = self._is_counting = False
        gevent.joinall(clients, timeout=DRAIN_SECONDS)
        for client in clients:
            if not client.dead:
                self._fail("no answer")
        self._run.latencies.sort()
        return self._run

    def _client(self, tokens: dict[str, str] | None) -> None:
        connection = None
        while self._is_sending and self._left > 0:
            self._left -= 1
            request = next(self._requests) if tokens is None else _with(self._job, tokens)
            connection = connection or self._connect()
            began = perf_counter()
            try:
                connection.sendall(request.raw.encode())
                head, body = _answer_from(connection.recv)
                _check(request, head, body)
                if tokens is not None:
                    _renew(tokens, body if self._job.chained_by == "body" else head)
            except (OSError, WrongAnswer) as error:
                self._fail(f"{type(error).__name__}: {error}")
                connection = None
                continue
            self._run.counted += self._is_counting
            if self._is_counting or not self._is_sending:
                self._run.latencies.append(1000 * (perf_counter() - began))
            if CLOSE.search(head):
                connection = None

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._job.port), timeout=DRAIN_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _fail(self, reason: str) -> None:
        self._run.failed += 1
        self._run.first_failure = self._run.first_failure or reason


def _answer_from(receive: Callable[[int], bytes]) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(receive)
    head, _, body = data.partition(b"\r\n\r\n")
    if length := LENGTH.search(head):
        while len(body) < int(length[1]):
            body += _some(receive)
    else:  # in chunks; no answer contains the marker of the last one as text
        while not (b"\r\n" + body).endswith(LAST_CHUNK):
            body += _some(receive)
    return head, body


def _some(receive: Callable[[int], bytes]) -> bytes:
    if not (data := receive(RECEIVE_BYTES)):
        raise WrongAnswer("closed by the server")
    return data


def _check(request: Request, head: bytes, body: bytes) -> None:
    if not head.startswith(b"HTTP/1.1 %d" % request.status) or request.expect.encode() not in body:
        raise WrongAnswer((head + b"\n" + body)[:400].decode("utf-8", "replace"))


def _with(job: Job, tokens: dict[str, str]) -> Request:
    """Return the template's request with the newest tokens in its cookies or its body."""
    template = job.template or Request("")
    if job.chained_by == "cookies":
        cookie = "; ".join(f"{name}={value}" for name, value in tokens.items())
        raw = template.raw.replace("@@COOKIES@@", cookie)
    else:
        head, _, body = template.raw.partition("\r\n\r\n")
        (token,) = tokens.values()
        body = body.replace("@@TOKEN@@", token)
        head = re.sub(r"(?<=\r\nContent-Length: )\d+", str(len(body)), head)
        raw = f"{head}\r\n\r\n{body}"
    return Request(raw, template.status, template.expect)


def _renew(tokens: dict[str, str], answer: bytes) -> None:
    """Take the new tokens from an answer's cookies, or from a field of its body."""
    for name, old in tokens.items():
        pattern = rf'set-cookie: *{name}=([^;\r]+)|"{name}" *: *"([^"]+)"'
        found = re.search(pattern.encode(), answer, re.IGNORECASE)
        new = (found[1] or found[2]).decode() if found else old
        if new == old:
            raise WrongAnswer(f"{name} was not renewed")
        tokens[name] = new


def generate(job: Job, pipe: Connection) -> None:
    """Run a job in this process, and send the result."""
    gc.disable()  # a collection would show up as server latency
    pipe.send(Generator(job).run(pipe))
