"""A worker's listener, which balances connections across the workers.

In stock gunicorn whichever worker wakes first accepts. With few, long-lived connections (a proxy's
keep-alive pool, event streams) one worker then ends up doing nearly all the work.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gevent.server import StreamServer

from app.serving import tcp_info
from app.serving.shares import Share

# How often, and for how long each time, a busier worker defers to a less loaded one. In all about
# 25 ms: what a worker in the middle of a few requests needs to get back to its listener.
MAX_PAUSES = 20
PAUSE_SECONDS = 0.001


class BalancedServer(StreamServer):
    """Accepts connections once the workers that hold fewer have had their chance."""

    def __init__(
        self,
        listener: Any,
        share: Share,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> None:
        super().__init__(listener, **options)
        self._share = share
        self._monotonic = monotonic
        # Pauses spent waiting for each other worker, by its slot and wake-up count.
        self._waits: dict[tuple[int, int], int] = {}
        self._last_pause = 1  # real length of the last pause, in multiples of PAUSE_SECONDS

    def _do_read(self) -> None:
        """Handle gevent's "the listener is readable"."""
        self._share.record_wakeup()
        if not self._should_defer():
            # Unlimited, the first worker awake would take a whole burst; one connection per turn of
            # the loop would take a busy worker seconds.
            self.max_accept = self._share.accept_quota(self._waiting())
            super()._do_read()  # type: ignore[misc]  # private, so not in the stubs
            return
        # gevent's own way to suspend accepting, normally used after a failed accept().
        self.stop_accepting()
        self._timer = self.loop.timer(PAUSE_SECONDS)
        self._timer.start(self._look_again, self._monotonic())

    def _look_again(self, paused_at: float) -> None:
        """Resume accepting, and note how long the pause took: a busy worker's loop runs late."""
        self._last_pause = max(1, round((self._monotonic() - paused_at) / PAUSE_SECONDS))
        self._start_accepting_if_started()  # type: ignore[attr-defined]

    def _should_defer(self) -> bool:
        """Return whether to pause in favour of a worker that holds fewer connections.

        Each worker that does not wake up, because it is busy or dead, is allowed MAX_PAUSES of
        them, and gets as many again once it does: so a stuck worker delays one connection, not all.
        """
        before, rivals = self._waits, self._share.rivals()
        pauses, self._last_pause = self._last_pause, 1
        self._waits = {rival: before.get(rival, 0) for rival, _ in rivals}
        wanted = [rival for rival, holds_fewer in rivals if holds_fewer]
        for rival in wanted:
            self._waits[rival] += pauses if rival in before else 1
        return any(self._waits[rival] <= MAX_PAUSES for rival in wanted)

    def _waiting(self) -> int:
        """Return the length of the accept queue; a guess where the system does not report it."""
        return tcp_info.read(self.socket, tcp_info.ACCEPT_QUEUE) or 2 * self._share.slack

    def do_handle(self, *args: Any) -> None:
        """Count the connection before anything else runs, so that other workers see it at once."""
        self._share.opened()
        super().do_handle(*args)

    def do_close(self, *args: Any) -> None:
        """Uncount the connection; gevent calls this exactly once for each, however it ended."""
        self._share.closed()
        super().do_close(*args)

    def close_after_backlog(self) -> None:
        """Accept the whole backlog, then close, so that a stop resets no client."""
        self.stop_accepting()
        try:
            while not self.full() and (connection := self.do_read()):
                self.do_handle(*connection)
        except OSError:
            pass  # out of file descriptors: those clients see a reset
        finally:
            self.socket.close()
        self.close()


@dataclass(frozen=True)
class ListenerName:
    """The only part of a listener that gunicorn needs while it serves a connection.

    The listener itself is closed before its last connections are served, and gunicorn would drop
    those.
    """

    name: Any

    def getsockname(self) -> Any:
        """Return the address of the listener."""
        return self.name
