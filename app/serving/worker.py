"""What we change in gunicorn: its worker, which ends what would outlast its stop, and its log."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from select import POLLIN
from socket import SHUT_RDWR
from typing import Any

import gevent
from gevent.monkey import get_original
from gunicorn.glogging import Logger
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


class Log(Logger):
    """gunicorn's own messages without its access log, since the application writes one."""

    # Otherwise, as logging is configured, it would compose a line that nobody reads.
    access_log_enabled = False


class Worker(GeventWorker):
    """Loses no request when it stops, hangs up on who waits between two, and serves all in turn.

    gunicorn would wait for them until its graceful time-out, and then log a traceback for each. It
    would drop connections that it accepted just before it closed the listener, whose address it
    looks up when it begins with a connection, and those that it had yet to accept.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._clients: dict[Any, Any] = {}
        self._waiting: set[Any] = set()

    def run(self) -> None:
        """Serve until told to stop."""
        self._listener = Listener(self.sockets[0].getsockname())
        self._still_open = self.sockets[0].dup()  # gunicorn closes the other
        self._last: list[Any] = []
        super().run()
        self._accept_last()
        gevent.joinall(self._last, timeout=LAST_REQUEST_SECONDS)

    def handle(self, _listener: Any, client: Any, addr: Any) -> None:
        """Serve a connection."""
        connection = gevent.getcurrent()
        self._clients[connection] = client
        try:
            super().handle(self._listener, client, addr)  # type: ignore[arg-type]  # all it needs
        finally:
            del self._clients[connection]

    def _accept_last(self) -> None:
        """Accept the connections that wait, and close the listener before another can arrive."""
        with suppress(OSError), self._still_open as listener:  # none waits any more
            listener.setblocking(False)
            while True:
                self._last.append(gevent.spawn(self.handle, None, *listener.accept()))

    @contextmanager
    def timeout_ctx(self) -> Iterator[None]:  # type: ignore[override]  # the stubs say None
        """Enter the context in which gunicorn waits for the next request of a connection."""
        connection = gevent.getcurrent()
        # Whose next request is there already would go on at once, and let all others wait.
        gevent.sleep(0)
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
            if self.sockets[0].fileno() < 0:
                self._accept_last()
            for connection in list(self._waiting):
                hang_up_unless_asked(self._clients[connection])


def hang_up_unless_asked(client: Any) -> None:
    """End a connection on which no further request has arrived.

    Nothing else may run between the look and the end, or a request could arrive in between: hence
    the system's own calls, and no greenlet that is told to end.
    """
    arrived, own_socket = get_original("select", "poll")(), get_original("socket", "socket")
    with suppress(OSError, ValueError):  # closed already
        arrived.register(client, POLLIN)
        if not arrived.poll(0):
            with own_socket(fileno=os.dup(client.fileno())) as same:
                same.shutdown(SHUT_RDWR)
