"""The listener of a worker, which shares connections evenly with the other workers.

Stock gunicorn lets whoever wakes first accept. With few, long-lived connections (a proxy's
keep-alive pool, event streams) one worker then ends up doing nearly all the work.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gevent.server import StreamServer

from app.serving import tcp_info
from app.serving.shares import Share

# A busier worker leaves a new connection to a less loaded one this often, this long each time.
# Together about 25 ms: what a worker in the middle of a few requests needs to look up.
PAUSES = 20
PAUSE = 0.001


class EvenServer(StreamServer):
    """Accepts connections, after those workers that hold fewer had their chance."""

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
        # How many pauses were spent on each other worker, by slot and wake-ups.
        self._waits: dict[tuple[int, int], int] = {}
        self._pauses = 1  # how many times PAUSE the last pause really took

    def _do_read(self) -> None:
        """Handle gevent's "the listener is readable"."""
        self._share.woke()
        if not self._leaves_it_to_others():
            # All of a burst would go to the first worker awake; and one at a time, a turn of the
            # loop each, would take a busy worker seconds.
            self.max_accept = self._share.due(self._waiting())
            super()._do_read()  # type: ignore[misc]  # private, so not in the stubs
            return
        # gevent's own way to stop looking for a while, else used after a failed accept().
        self.stop_accepting()
        self._timer = self.loop.timer(PAUSE)
        self._timer.start(self._look_again, self._monotonic())

    def _look_again(self, paused_at: float) -> None:
        """Note how long this pause really took; the loop of a busy worker is late."""
        self._pauses = max(1, round((self._monotonic() - paused_at) / PAUSE))
        self._start_accepting_if_started()  # type: ignore[attr-defined]

    def _leaves_it_to_others(self) -> bool:
        """Tell whether to wait a moment for a worker that holds fewer connections.

        Patience is spent on workers that do not wake up, because they are busy or dead, and
        renewed as soon as one does: so a stuck worker delays one connection, not every one.
        """
        before, rivals = self._waits, self._share.rivals()
        pauses, self._pauses = self._pauses, 1
        self._waits = {rival: before.get(rival, 0) for rival, _ in rivals}
        wanted = [rival for rival, holds_fewer in rivals if holds_fewer]
        for rival in wanted:
            self._waits[rival] += pauses if rival in before else 1
        return any(self._waits[rival] <= PAUSES for rival in wanted)

    def _waiting(self) -> int:
        """Return how many connections wait to be taken; a guess where the system does not tell."""
        return tcp_info.read(self.socket, tcp_info.ACCEPT_QUEUE) or 2 * self._share.a_little

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
