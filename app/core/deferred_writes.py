"""Redis writes that no request waits for, sent a few at a time."""

import threading
from collections.abc import Callable

from redis import Redis
from redis.exceptions import RedisError

from app.core.breaker import Breaker
from app.core.clock import Clock

GATHERING_SECONDS = 0.005
STOP_SECONDS = 1.0
# More than this waits only while Redis hangs; what is lost then is what an outage loses anyway.
MOST_WAITING = 10_000

Write = tuple[str, str, int]


class DeferredWrites:
    """Expiring keys by name, text and seconds.

    Until `start` was called, as on the command line, each is written at once.
    """

    def __init__(self, redis: Redis, breaker: Breaker, clock: Clock) -> None:
        self._redis = redis
        self._breaker = breaker
        self._clock = clock
        self._waiting: list[Write] = []
        self._has_work = threading.Event()
        self._stopped = False
        self._is_running = False

    def put(self, name: str, text: str, seconds: int) -> None:
        """Have a key written within some milliseconds; without Redis it is not."""
        if not self._is_running:
            self._send([(name, text, seconds)])
        elif len(self._waiting) < MOST_WAITING:
            self._waiting.append((name, text, seconds))
            if not self._has_work.is_set():
                self._has_work.set()

    def start(self) -> Callable[[], None]:
        """Write in the background from now on; return how to stop, which writes what waits."""
        thread = threading.Thread(target=self._run, name="deferred writes", daemon=True)
        self._is_running = True
        thread.start()

        def stop() -> None:
            self._stopped, self._is_running = True, False
            self._has_work.set()
            thread.join(timeout=STOP_SECONDS)

        return stop

    def _run(self) -> None:
        while not self._stopped or self._waiting:
            self._has_work.wait()
            self._clock.sleep(GATHERING_SECONDS)
            self._has_work.clear()
            writes, self._waiting = self._waiting, []
            if writes:
                self._send(writes)

    def _send(self, writes: list[Write]) -> None:
        def send() -> None:
            with self._redis.pipeline(transaction=False) as pipeline:
                for name, text, seconds in writes:
                    pipeline.set(name, text, ex=seconds)
                pipeline.execute()

        try:
            self._breaker.call(send)
        except RedisError:
            return
