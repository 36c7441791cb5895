"""The gunicorn worker: gevent, with balanced connections and a prompt, graceful stop."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from types import FrameType
from typing import Any

import gevent
from gevent.event import Event
from gevent.pool import Pool
from gunicorn import util
from gunicorn.http.errors import ParseException
from gunicorn.workers.ggevent import GeventWorker

from app.core.event_loop import yield_to_event_loop
from app.core.logs import request_fields
from app.core.tokens import random_uuid
from app.serving.body import TimedBody
from app.serving.connection import Connection, KeepAliveTimeout
from app.serving.listener import BalancedServer, ListenerName
from app.serving.parent_death import die_with_parent
from app.serving.refusals import write_error
from app.serving.shares import ConnectionTable

HEARTBEAT_SECONDS = 1.0
# How long a request in flight when the stop begins still has to arrive: a client's first one, or
# the next one on a proxy's keep-alive connection. A proxy may not retry a POST, so one that hits a
# closing connection is lost.
LAST_REQUEST_GRACE_SECONDS = 0.5

table = ConnectionTable()
util.write_error = write_error


class BalancedWorker(GeventWorker):
    """A GeventWorker that reads every request to its end and resets none when it stops."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.share = table.take()
        # Called when the stop begins: ends the responses that would outlast it.
        self.begin_shutdown: Callable[[], None] = lambda: None
        # The paths with such responses.
        self.long_response_paths: frozenset[str] = frozenset()
        self._connections: dict[Any, Connection] = {}

    def init_process(self) -> None:
        """Become the worker, in the forked process."""
        # Otherwise the listener stays open for up to a second after the master is killed, and the
        # next master cannot bind.
        die_with_parent(self.ppid)
        super().init_process()

    def run(self) -> None:
        """Serve until told to stop, then finish the requests in progress."""
        self._wake_up = gevent.get_hub().loop.async_()
        stop = Event()
        self._wake_up.start(stop.set)
        self._answer: Any = self.wsgi
        self.wsgi = self._answer_detached  # type: ignore[assignment]  # the stubs type WSGI differently
        servers = [self._listen(listener) for listener in self.sockets]
        self.share.join()
        while self.alive:
            self.notify()
            stop.wait(HEARTBEAT_SECONDS)
        self._drain(servers)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM: stop gracefully, at once instead of at the next heartbeat."""
        super().handle_exit(sig, frame)
        if hasattr(self, "_wake_up"):
            self._wake_up.send()

    def _listen(self, listener: Any) -> BalancedServer:
        listener.setblocking(1)
        pool = Pool(self.worker_connections)
        handle = partial(self.handle, ListenerName(listener.getsockname()))
        server = BalancedServer(listener, self.share, handle=handle, spawn=pool)
        server.start()
        return server

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        """Serve one connection; runs in its own greenlet."""
        me = gevent.getcurrent()
        self._connections[me] = Connection(client)
        try:
            super().handle(listener, client, addr)
        finally:
            del self._connections[me]

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> Any:
        """Serve one request, and read all of it before the connection is reused or closed.

        Closing with data in flight resets the connection (RFC 9112 §9.6) and loses the response: an
        upload with an expired token would be a network error to a browser and a 502 to nginx.
        """
        connection = self._connections[gevent.getcurrent()]
        body = req.body = TimedBody(req.body, connection)
        try:
            super().handle_request(listener_name, req, sock, addr)
        except StopIteration:  # gunicorn's signal to close the connection
            connection.finish_sending()
            body.drain()
            raise
        if not body.drain():
            raise StopIteration

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer a malformed request under an id of its own, not that of the previous request."""
        if isinstance(exc, ParseException):
            request_fields.set({"request_id": random_uuid()})
        super().handle_error(req, client, addr, exc)

    def _answer_detached(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Run the application so that a response lasting hours keeps next to no memory.

        Its greenlet would keep the stack that the request once needed: 5 KiB for each of thousands.
        So the request is handled in a greenlet that ends, and the WSGI environment is emptied,
        except for what gunicorn still reads.
        """
        body: Iterable[bytes]
        if environ["PATH_INFO"] not in self.long_response_paths:
            body = self._answer(environ, start_response)
            return body
        connection = self._connections[gevent.getcurrent()]
        connection.prepare_long_response(is_chunked=environ["SERVER_PROTOCOL"] != "HTTP/1.0")
        body = gevent.spawn(self._answer, environ, start_response).get()
        kept = environ["wsgi.file_wrapper"]
        environ.clear()
        environ["wsgi.file_wrapper"] = kept
        return body

    def timeout_ctx(self) -> KeepAliveTimeout:  # type: ignore[override]  # the stubs say None
        """Return the context in which gunicorn waits for the next request of a connection."""
        # A client that sends its next request at once would otherwise be served again and again
        # while others wait: reading data that has already arrived never yields by itself.
        yield_to_event_loop()
        return KeepAliveTimeout(self.cfg.keepalive, self._connections[gevent.getcurrent()])

    def _drain(self, servers: list[BalancedServer]) -> None:
        """Accept the backlog but nothing new, close idle connections, let requests finish."""
        self.share.leave()
        self.begin_shutdown()
        for server in servers:
            server.close_after_backlog()
        if not self._connections_ended(self.cfg.graceful_timeout):
            self.log.warning("Worker graceful timeout (pid:%s)", self.pid)
            for server in servers:
                server.stop(timeout=1)

    def _connections_ended(self, seconds: float) -> bool:
        """Wait for all connections to end; return False if some outlast `seconds`."""
        begin = time.monotonic()
        # gevent starts handlers only in the next turn of its loop.
        gevent.sleep(0)
        while self._connections and time.monotonic() - begin < seconds:
            self.tmp.notify()
            if time.monotonic() - begin > LAST_REQUEST_GRACE_SECONDS:
                for connection in list(self._connections.values()):
                    if connection.is_idle:
                        connection.hang_up()
            gevent.sleep(0.02)
        return not self._connections
