"""Redis commands that no request waits for, sent in small batches."""

import logging
import threading
from collections.abc import Callable

from redis import Redis
from redis.exceptions import RedisError

from app.core.breaker import Breaker
from app.core.clock import Clock

GATHERING_SECONDS = 0.005
STOP_SECONDS = 1.0
# The queue gets this long only while Redis hangs; what is dropped then, an outage loses anyway.
MAX_WAITING = 10_000

log = logging.getLogger(__name__)

Command = tuple[str | int, ...]


class DeferredWrites:
    """Queues expiring keys and channel messages, and sends them in the order they came.

    Until `start` is called, and so in every CLI command, each is sent at once.
    """

    def __init__(self, breaker: Breaker, clock: Clock) -> None:
        self._breaker = breaker
        self._clock = clock
        self._waiting: list[Command] = []
        self._has_work = threading.Event()
        self._is_running = False

    def put(self, name: str, text: str, seconds: int) -> None:
        """Write a key within some milliseconds; dropped while Redis is down."""
        self._add(("SET", name, text, "EX", seconds))

    def publish(self, channel: str, text: str) -> None:
        """Publish a message within some milliseconds; dropped while Redis is down."""
        self._add(("PUBLISH", channel, text))

    def start(self) -> Callable[[], None]:
        """Send in the background from now on; return a function that flushes and stops."""
        thread = threading.Thread(target=self._run, name="deferred writes", daemon=True)
        self._is_running = True
        thread.start()

        def stop() -> None:
            self._is_running = False
            self._has_work.set()
            thread.join(timeout=STOP_SECONDS)

        return stop

    def _add(self, command: Command) -> None:
        if not self._is_running:
            self._send([command])
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(command)
            if not self._has_work.is_set():
                self._has_work.set()

    def _run(self) -> None:
        while self._is_running or self._waiting:
            self._has_work.wait()
            self._clock.sleep(GATHERING_SECONDS)
            self._has_work.clear()
            commands, self._waiting = self._waiting, []
            try:
                if commands:
                    self._send(commands)
            except Exception:
                # An exception must not end this thread, which is never restarted.
                log.exception("deferred writes were lost")

    def _send(self, commands: list[Command]) -> None:
        def send(redis: Redis) -> None:
            with redis.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
                pipeline.execute()

        try:
            self._breaker.call(send)
        except RedisError:
            return
