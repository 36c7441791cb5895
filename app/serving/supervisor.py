"""Child processes that are restarted when they die, and the signals that end a run."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

DEATHS_ALLOWED = 5
WINDOW_SECONDS = 30.0
FIRST_BACKOFF_SECONDS = 0.25
FORCED_STOP_SECONDS = 3.0


class GaveUp(Exception):
    """A child keeps dying; the message names it."""


class Signals:
    """Counts SIGINT, SIGTERM and SIGHUP, notices SIGCHLD, and sleeps without polling."""

    def __init__(self) -> None:
        self.stops = 0
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._count)
        # Only a signal with a handler writes to the wake-up descriptor.
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _count(self, number: int, _frame: FrameType | None) -> None:
        # systemd may send SIGHUP right after SIGTERM: that is not a second request to stop.
        self.stops = max(self.stops, 1) if number == signal.SIGHUP else self.stops + 1

    @property
    def must_stop_now(self) -> bool:
        """Whether a stop was requested twice."""
        return self.stops > 1

    def wait(self, seconds: float | None) -> None:
        """Sleep until a signal arrives or `seconds` have passed; None sets no limit."""
        select.select([self._reader], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            self._reader.recv(4096)

    def wait_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait for `done`, checked at each signal; return False on timeout or a second stop."""
        deadline = time.monotonic() + seconds
        while not (finished := done()) and not self.must_stop_now and time.monotonic() < deadline:
            self.wait(deadline - time.monotonic())
        return finished

    def sleep(self, seconds: float) -> None:
        """Sleep for `seconds`, or until a stop is requested."""
        deadline = time.monotonic() + seconds
        while not self.stops and (left := deadline - time.monotonic()) > 0:
            self.wait(left)


@dataclass
class Child:
    """A process and how to start it."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    stop_seconds: float
    process: subprocess.Popen[bytes] | None = None
    _deaths: deque[float] = field(default_factory=lambda: deque(maxlen=DEATHS_ALLOWED))

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process, for the first time or again."""
        self.process = self.start()
        return self.process

    def is_dead(self) -> bool:
        """Return whether the process has exited, reaping it if so."""
        return self.process is not None and self.process.poll() is not None

    def record_death(self) -> float:
        """Return the backoff in seconds before the restart: none at first, then growing.

        Raises: GaveUp, at DEATHS_ALLOWED deaths within WINDOW_SECONDS.
        """
        now = time.monotonic()
        self._deaths.append(now)
        recent = sum(1 for death in self._deaths if now - death < WINDOW_SECONDS)
        if recent >= DEATHS_ALLOWED:
            raise GaveUp(f"{self.name} died {recent} times within {WINDOW_SECONDS:g} s")
        return float(FIRST_BACKOFF_SECONDS * (2 ** (recent - 1) - 1))

    def stop(self, signals: Signals) -> None:
        """Stop the process gracefully, then with SIGINT, finally with SIGKILL."""
        if self.process is None or self.is_dead():
            return
        self.process.terminate()
        if signals.wait_until(self.is_dead, self.stop_seconds):
            return
        # gunicorn and Valkey both take a SIGINT during a graceful stop as "stop now".
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(FORCED_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            # The whole process group: the workers must not outlive their master.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def keep_alive(children: list[Child], signals: Signals, say: Callable[[str], None]) -> None:
    """Restart dead children until a stop is requested.

    Raises: GaveUp.
    """
    while not signals.stops:
        dead = [child for child in children if child.is_dead()]
        for child in dead:
            pause = child.record_death()
            say(f"{child.name} died, starting it again")
            signals.sleep(pause)
            if not signals.stops:
                child.launch()
        if not dead:
            signals.wait(None)


def stop_all(children: list[Child], signals: Signals) -> None:
    """Stop the children in reverse order: each may need the ones started before it."""
    for child in reversed(children):
        child.stop(signals)
