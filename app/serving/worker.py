"""gunicorn's gevent worker, which ends what would outlast its stop."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ECONNRESET
from select import select
from typing import Any

import gevent
from gunicorn.workers.ggevent import GeventWorker

POLL_SECONDS = 0.1
# How long a request on its way still has to arrive: a proxy may not send a POST again.
LAST_REQUEST_SECONDS = 0.5


@dataclass(frozen=True)
class Listener:
    """What gunicorn asks of a listener for each connection."""

    name: Any

    def getsockname(self) -> Any:
        """Return the address it listens on."""
        return self.name


class Worker(GeventWorker):
    """Loses no request when it stops, and hangs up on who waits between two.

    gunicorn would wait for them until its graceful time-out, and then log a traceback for each. It
    would drop connections that it accepted just before it closed the listener, whose address it
    looks up when it begins with a connection.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._clients: dict[Any, Any] = {}
        self._waiting: set[Any] = set()

    def run(self) -> None:
        """Serve until told to stop."""
        self._listener = Listener(self.sockets[0].getsockname())
        super().run()

    def handle(self, _listener: Any, client: Any, addr: Any) -> None:
        """Serve a connection."""
        connection = gevent.getcurrent()
        self._clients[connection] = client
        try:
            super().handle(self._listener, client, addr)  # type: ignore[arg-type]  # all it needs
        finally:
            del self._clients[connection]

    @contextmanager
    def timeout_ctx(self) -> Iterator[None]:  # type: ignore[override]  # the stubs say None
        """Enter the context in which gunicorn waits for the next request of a connection."""
        connection = gevent.getcurrent()
        with gevent.Timeout(self.cfg.keepalive, False):  # type: ignore[arg-type]  # as gunicorn does
            self._waiting.add(connection)
            try:
                yield
            finally:
                self._waiting.discard(connection)

    def watch_for_stop(self, begin_shutdown: Callable[[], None]) -> None:
        """Call `begin_shutdown` once told to stop, and hang up on idle connections from then on."""
        while self.alive:
            gevent.sleep(POLL_SECONDS)
        begin_shutdown()
        while True:
            gevent.sleep(LAST_REQUEST_SECONDS)
            for connection in list(self._waiting):
                client = self._clients[connection]
                if client.fileno() < 0 or select([client], [], [], 0)[0]:
                    continue  # its next request has just arrived
                connection.kill(ConnectionResetError(ECONNRESET, "stopping"), block=False)
