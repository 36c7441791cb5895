"""gunicorn's gevent worker, which ends what would outlast its stop."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ECONNRESET
from typing import Any

import gevent
from gunicorn.workers.ggevent import GeventWorker

POLL_SECONDS = 0.1
# How long a request on its way still has to arrive: a proxy may not send a POST again.
LAST_REQUEST_SECONDS = 0.5


class Worker(GeventWorker):
    """Hangs up on who waits between two requests when it stops.

    gunicorn would wait for them until its graceful time-out, and then log a traceback for each.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: set[Any] = set()

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
                connection.kill(ConnectionResetError(ECONNRESET, "stopping"), block=False)
