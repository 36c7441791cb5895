"""Keeps many event streams open, one greenlet each, in a process of its own."""

import gc
import re
import resource
from collections import defaultdict
from multiprocessing.connection import Connection
from time import monotonic

import gevent
from gevent import socket
from gevent.lock import BoundedSemaphore

PATH = "/api/v1/auth/events/storage"
AT_ONCE = 64
OPEN_SECONDS = 180
EVENT = re.compile(rb'"file_ids":\[(\d+)')
SIGN_OF_LIFE = b": keep-alive"
END = b"\r\n0\r\n\r\n"


class StreamClients:
    """Open streams, and when each event arrived, by the number that it carries as a file id."""

    def __init__(self, port: int) -> None:
        self._port, self._opening = port, BoundedSemaphore(AT_ONCE)
        self.opened = self.lost = 0
        self.arrivals: defaultdict[int, list[float]] = defaultdict(list)

    def listen(self, token: str) -> None:
        """Open one stream and listen until it ends."""
        with self._opening:
            connection = socket.create_connection(("127.0.0.1", self._port), timeout=OPEN_SECONDS)
            lines = [f"GET {PATH} HTTP/1.1", "Host: 127.0.0.1", "User-Agent: Mozilla/5.0 (bench)"]
            lines += ["Accept: text/event-stream", f"Cookie: service_access={token}", "", ""]
            connection.sendall("\r\n".join(lines).encode())
            while SIGN_OF_LIFE not in (data := connection.recv(65536)):
                if not data:
                    return
        self.opened += 1
        while (data := connection.recv(65536)) and not data.endswith(END):
            now = monotonic()
            for number in EVENT.findall(data):
                self.arrivals[int(number)].append(now)
        self.lost += 1


def hold(port: int, tokens: list[str], pipe: Connection) -> None:
    """Open a stream per token and send how many there are; then answer each word by a report."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.disable()
    clients, end = StreamClients(port), monotonic() + OPEN_SECONDS
    streams = [gevent.spawn(clients.listen, token) for token in tokens]
    while clients.opened < len(streams) and monotonic() < end:
        gevent.sleep(0.1)
    pipe.send(clients.opened)
    while True:
        if pipe.poll():
            pipe.recv()
            pipe.send((clients.lost, dict(clients.arrivals)))
            clients.arrivals.clear()
        gevent.sleep(0.05)
