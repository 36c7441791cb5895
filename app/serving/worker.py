"""The gunicorn worker: gevent, with connections shared evenly and a prompt, graceful stop.

Stock gunicorn lets whoever wakes first accept. With few, long-lived connections (a proxy's
keep-alive pool, event streams) one worker then ends up doing nearly all the work.
"""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from errno import ETIMEDOUT
from functools import partial
from socket import (
    IPPROTO_TCP,
    MSG_PEEK,
    SHUT_RD,
    SHUT_RDWR,
    SHUT_WR,
    SO_SNDBUF,
    SOL_SOCKET,
    TCP_INFO,
)
from types import FrameType, TracebackType
from typing import Any, Literal

import gevent
from gevent.event import Event
from gevent.pool import Pool
from gevent.server import StreamServer
from gunicorn.http.body import ChunkedReader
from gunicorn.workers.ggevent import GeventWorker

from app.serving.connections import ConnectionTable, Share
from app.serving.parent_death import die_with_parent

# A busier worker leaves a new connection to a less loaded one this often, this long each time.
# Together about 25 ms: what a worker in the middle of a few requests needs to look up.
PAUSES = 20
PAUSE = 0.001
HEARTBEAT = 1.0
SEND_BUFFER_BYTES = 128 * 1024
READABLE = 1  # libev's EV_READ
# What is on its way when the stop begins still has this long to arrive: a client's first request,
# or the next one on a connection that a proxy keeps. A proxy may not send a POST twice, so one that
# meets a connection being closed is lost.
LAST_REQUEST_GRACE = 0.5
# Slow bodies hold connections (OWASP, Denial of Service Cheat Sheet): it wants a lowest rate and a
# longest time. nginx's client_body_timeout alone, 60 s between two reads, lets a byte a minute in.
BODY_SECONDS = 30.0
# Who sends a file over a bad line needs minutes. As with Apache's RequestReadTimeout, whose default
# is body=20,MinRate=500, a file earns its time by arriving, and here not without end.
FILE_BYTES_PER_SECOND = 1024
LONGEST_FILE_SECONDS = 1800.0  # 16 MiB at 9 KiB a second
SLOW = "slow body"
PIECE_BYTES = 16 * 1024  # as chunks of one byte they take some 30 ms
CLOCK_MONOTONIC_COARSE = 6  # linux/time.h; it moves with the kernel's ticks
KERNEL_TICK_SECONDS = time.clock_getres(CLOCK_MONOTONIC_COARSE)
# Where Linux's struct tcp_info has tcpi_last_data_recv, in milliseconds (linux/tcp.h).
LAST_DATA_RECEIVED = slice(52, 56)

table = ConnectionTable()


class EvenServer(StreamServer):
    """Accepts connections, after those workers that hold fewer had their chance."""

    # One connection per wake-up, or the first worker awake would take a whole burst.
    max_accept = 1

    def __init__(self, listener: Any, share: Share, **options: Any) -> None:
        super().__init__(listener, **options)
        self._share = share
        self._rivals: list[tuple[int, int]] = []
        self._waits = 0

    def _do_read(self) -> None:
        """Handle gevent's "the listener is readable"."""
        self._share.woke()
        if not self._leaves_it_to_others():
            super()._do_read()  # type: ignore[misc]  # private, so not in the stubs
            return
        # gevent's own way to stop looking for a while, else used after a failed accept().
        self.stop_accepting()
        self._timer = self.loop.timer(PAUSE)
        self._timer.start(self._start_accepting_if_started)  # type: ignore[attr-defined, call-arg]

    def _leaves_it_to_others(self) -> bool:
        """Tell whether to wait a moment for a worker that holds fewer connections.

        Patience is spent on workers that do not wake up, because they are busy or dead, and
        renewed as soon as one does: so a stuck worker delays one connection, not every one.
        """
        rivals = self._share.less_loaded()
        if rivals != self._rivals:
            self._rivals, self._waits = rivals, 0
        self._waits += 1
        return bool(rivals) and self._waits <= PAUSES

    def do_handle(self, *args: Any) -> None:
        """Count the connection before anything else runs, so that the others see it at once."""
        self._share.opened()
        super().do_handle(*args)

    def do_close(self, *args: Any) -> None:
        """Uncount it; gevent calls this once per connection, whatever happened to it."""
        self._share.closed()
        super().do_close(*args)

    def close_after_backlog(self) -> None:
        """Take what clients already connected to and close, so that a stop resets none of them."""
        self.stop_accepting()
        try:
            while not self.full() and (connection := self.do_read()):
                self.do_handle(*connection)
        except OSError:
            pass  # out of file descriptors: those clients see a reset
        finally:
            self.socket.close()
        self.close()


@dataclass(eq=False, slots=True)
class Connection:
    """A client's connection: `reads` counts the requests waited for, the current one included."""

    client: Any
    reads: int = 0
    waiting: bool = False
    is_chunked: bool = False
    _watcher: Any = None

    def silent_seconds(self) -> float:
        """Return for how long at least nothing has arrived; 0 for what is no TCP connection.

        The kernel counts in its own ticks, and a part of one for a whole one.
        """
        try:
            info = self.client.getsockopt(IPPROTO_TCP, TCP_INFO, LAST_DATA_RECEIVED.stop)
        except OSError:
            return 0.0
        milliseconds = int.from_bytes(info[LAST_DATA_RECEIVED], sys.byteorder)
        return max(0.0, milliseconds / 1000 - KERNEL_TICK_SECONDS)

    def hang_up(self) -> None:
        """End the wait for another request.

        Only the reading side is shut: bytes that have arrived are still read and answered.
        gevent's own shutdown() would instead throw an error into the greenlet that waits.
        """
        try:
            self.client._sock.shutdown(SHUT_RD)
        except OSError:
            return  # the client was faster

    def finish_sending(self) -> None:
        """Tell the client that nothing follows; what it sends is still received."""
        try:
            self.client._sock.shutdown(SHUT_WR)
        except OSError:
            return  # the client was faster

    def expect_long_answer(self, *, is_chunked: bool) -> None:
        """Prepare for an answer whose reader may be slow for hours."""
        self.is_chunked = is_chunked
        # The kernel would keep up to 4 MB for each.
        self.client.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES)

    def watch(self, left: Callable[[], None]) -> None:
        """Call `left` when the client hangs up, though nobody reads from it.

        A client that sends more instead is not watched any longer.
        """

        def look() -> None:
            self.unwatch()
            if self._has_left():
                gevent.spawn(left)

        self._watcher = gevent.get_hub().loop.io(self.client.fileno(), READABLE)
        self._watcher.start(look)

    def unwatch(self) -> None:
        """Watch no longer."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def cut(self) -> None:
        """Hang up on a client that does not read what is being sent to it."""
        try:
            self.client._sock.shutdown(SHUT_RDWR)
        except OSError:
            return  # the client was faster

    def send_now(self, data: bytes) -> bytes | None:
        """Send a part of the answer as gunicorn would, without waiting and so without a greenlet.

        Return what did not fit; None when nothing was sent: whoever tries again meets the reason.
        """
        framed = b"%X\r\n%b\r\n" % (len(data), data) if self.is_chunked else data
        try:
            sent = self.client._sock.send(framed)
        except OSError:
            return None
        return framed[sent:]

    def send_rest(self, rest: bytes) -> None:
        """Send what did not fit, waiting for the client to read."""
        self.client.sendall(rest)

    def _has_left(self) -> bool:
        try:
            return not self.client._sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


@dataclass(frozen=True)
class ListenerName:
    """All that gunicorn asks a listener for each connection.

    The listener itself is closed before the last of its connections is served, and gunicorn would
    hang up on those.
    """

    name: Any

    def getsockname(self) -> Any:
        """Return the address it listened on."""
        return self.name


class Wait(gevent.Timeout):
    """The keep-alive limit on the wait for a request, which marks the connection as idle."""

    def __init__(self, seconds: float, connection: Connection) -> None:
        super().__init__(seconds)
        self._connection = connection

    def __enter__(self) -> "Wait":
        self._connection.reads += 1
        self._connection.waiting = True
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[True] | None:
        """Swallow this time-out: gunicorn takes the missing request as the end."""
        self._connection.waiting = False
        super().__exit__(kind, error, trace)
        return True if error is self else None


class TimedBody:
    """A request's body, which must have arrived in full within BODY_SECONDS; a file earns more.

    A client that sends a byte now and then would otherwise hold its connection for ever. The
    application sees a lost connection, and gunicorn hangs up.
    """

    def __init__(self, body: Any, connection: Connection) -> None:
        self.line = connection
        self._body = body
        self._began = time.monotonic()
        self._ends_at = self._latest_end = self._began + BODY_SECONDS
        self._has_ended = False
        # Chunks may be of one byte, and to take many of them apart is all computing.
        self._is_chunked = isinstance(getattr(body, "reader", None), ChunkedReader)
        self.is_first_of_connection = connection.reads == 1

    def waited_seconds(self) -> float:
        """Return how long the request has been here at least; a busy worker takes it late."""
        return self.line.silent_seconds()

    def expect_file(self) -> None:
        """From now on let FILE_BYTES_PER_SECOND bytes that arrive earn another second.

        For bodies whose sender is known and that are not collected in memory: to send them slowly
        is to hold what they need.
        """
        self._latest_end = self._began + LONGEST_FILE_SECONDS

    def expect_nothing(self) -> None:
        """From now on the rest, which nobody wants, has no longer than any other body."""
        self._latest_end = min(self._latest_end, time.monotonic() + BODY_SECONDS)
        self._ends_at = min(self._ends_at, self._latest_end)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; of a file, or in chunks, perhaps fewer than asked for."""
        if self._has_ended:  # gunicorn asks again after every answer; a timer has its price
            return b""
        if self._ends_at < self._latest_end:
            size = min(size, self._bearable_bytes())
        if self._is_chunked and size > PIECE_BYTES:
            size = PIECE_BYTES
            gevent.sleep(0)
        content = self._in_time(self._body.read, size)
        # What has already arrived is read without waiting, so no time-out strikes.
        if content and time.monotonic() > self._ends_at:
            raise TimeoutError(ETIMEDOUT, SLOW)
        self._has_ended = not content and size != 0
        earned = len(content) / FILE_BYTES_PER_SECOND
        self._ends_at = min(self._latest_end, self._ends_at + earned)
        return content

    def readline(self, *size: int) -> bytes:
        """Return the next line."""
        return self._in_time(self._body.readline, *size)

    def throw_away(self) -> bool:
        """Read what the application left; False when it did not come to its end.

        Without letting others run, a client that sends without end would be read from alone.
        """
        try:
            while self.read(PIECE_BYTES):
                gevent.sleep(0)
        except Exception:  # those of broken framing are of no common kind
            return False
        return True

    def _bearable_bytes(self) -> int:
        """Return what even the slowest sender can bring in half of the time that is left.

        Bytes earn their time once they have been read, and a read ends when it has all of them.
        """
        return max(1, int((self._ends_at - time.monotonic()) * FILE_BYTES_PER_SECOND / 2))

    def _in_time(self, read: Callable[..., bytes], *size: int) -> bytes:
        with gevent.Timeout(
            max(0.0, self._ends_at - time.monotonic()), TimeoutError(ETIMEDOUT, SLOW)
        ):
            return read(*size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)


class EvenWorker(GeventWorker):
    """A GeventWorker with the listener and the stop described above."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.share = table.take()
        # Called when the stop begins: ends the answers that would outlast it.
        self.wind_down: Callable[[], None] = lambda: None
        # The paths of such answers.
        self.long_answers: frozenset[str] = frozenset()
        self._connections: dict[Any, Connection] = {}

    def init_process(self) -> None:
        """Become the worker, in the forked process."""
        # Else the listener stays open for up to a second after the master was killed, and its
        # successor cannot bind.
        die_with_parent(self.ppid)
        super().init_process()

    def run(self) -> None:
        """Serve until told to stop, then finish what has begun."""
        self._wake_up = gevent.get_hub().loop.async_()
        stop = Event()
        self._wake_up.start(stop.set)
        self._answer: Any = self.wsgi
        self.wsgi = self._frugally  # type: ignore[assignment]  # the stubs spell WSGI otherwise
        servers = [self._listen(listener) for listener in self.sockets]
        self.share.join()
        while self.alive:
            self.notify()
            stop.wait(HEARTBEAT)
        self._drain(servers)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM: stop gracefully, at once instead of at the next heartbeat."""
        super().handle_exit(sig, frame)
        if hasattr(self, "_wake_up"):
            self._wake_up.send()

    def _listen(self, listener: Any) -> EvenServer:
        listener.setblocking(1)
        pool = Pool(self.worker_connections)
        handle = partial(self.handle, ListenerName(listener.getsockname()))
        server = EvenServer(listener, self.share, handle=handle, spawn=pool)
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
        """Answer one request, and read all of it before the connection is used again or closed.

        Closed with data still on its way it would be reset (RFC 9112 §9.6), and the answer lost: an
        upload with an expired token would be a network error to a browser and a 502 to nginx.
        """
        connection = self._connections[gevent.getcurrent()]
        body = req.body = TimedBody(req.body, connection)
        try:
            super().handle_request(listener_name, req, sock, addr)
        except StopIteration:  # gunicorn's word for: close the connection
            connection.finish_sending()
            body.throw_away()
            raise
        if not body.throw_away():
            raise StopIteration

    def _frugally(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Run the application so that an answer which lasts for hours keeps next to nothing.

        Its greenlet would keep the stack that the request once needed: 5 KiB for each of thousands.
        So the request is dealt with in a greenlet that ends, and the environment is forgotten, but
        for what gunicorn still looks at.
        """
        body: Iterable[bytes]
        if environ["PATH_INFO"] not in self.long_answers:
            body = self._answer(environ, start_response)
            return body
        connection = self._connections[gevent.getcurrent()]
        connection.expect_long_answer(is_chunked=environ["SERVER_PROTOCOL"] != "HTTP/1.0")
        body = gevent.spawn(self._answer, environ, start_response).get()
        kept = environ["wsgi.file_wrapper"]
        environ.clear()
        environ["wsgi.file_wrapper"] = kept
        return body

    def timeout_ctx(self) -> Wait:  # type: ignore[override]  # the stubs say None
        """Return the context in which gunicorn waits for the next request of a connection."""
        # A client that sends its next request at once would otherwise be served again and again
        # while others wait: reading what has already arrived never yields by itself.
        gevent.sleep(0)
        return Wait(self.cfg.keepalive, self._connections[gevent.getcurrent()])

    def _drain(self, servers: list[EvenServer]) -> None:
        """Take no new connection, hang up idle ones, let the others finish their request."""
        self.share.leave()
        self.wind_down()
        for server in servers:
            server.close_after_backlog()
        if not self._connections_ended(self.cfg.graceful_timeout):
            self.log.warning("Worker graceful timeout (pid:%s)", self.pid)
            for server in servers:
                server.stop(timeout=1)

    def _connections_ended(self, seconds: float) -> bool:
        """Wait for all connections to end; False when some last longer than `seconds`."""
        begin = time.monotonic()
        # gevent starts a handler in the next turn of its loop.
        gevent.sleep(0)
        while self._connections and time.monotonic() - begin < seconds:
            self.tmp.notify()
            if time.monotonic() - begin > LAST_REQUEST_GRACE:
                for connection in list(self._connections.values()):
                    if connection.waiting:
                        connection.hang_up()
            gevent.sleep(0.02)
        return not self._connections
