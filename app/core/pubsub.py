"""Listening on Redis channels for as long as a process lives."""

import logging
import threading
from collections.abc import Callable

from redis import Redis
from redis.exceptions import RedisError

from app.core.clock import Clock

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
RETRY_SECONDS = 0.3


class Listener:
    """Calls `on_message(text)` for every message, and `on_gap()` when some may have been missed.

    The Redis client repairs a broken subscription silently, so each confirmation of a
    subscription, the first included, is taken as the end of a gap.
    """

    def __init__(
        self,
        redis: Redis,
        channel: str,
        clock: Clock,
        *,
        on_message: Callable[[str], None],
        on_gap: Callable[[], None],
    ) -> None:
        self._redis = redis
        self._channel = channel
        self._clock = clock
        self._on_message = on_message
        self._on_gap = on_gap
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"listen {channel}", daemon=True)

    def start(self) -> None:
        """Begin to listen in the background."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening; returns when the subscription is gone."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2 * POLL_SECONDS)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._listen()
            except (RedisError, OSError) as error:
                log.warning("subscription to %s was lost: %s", self._channel, error)
                self._on_gap()
                self._clock.sleep(RETRY_SECONDS)

    def _listen(self) -> None:
        with self._redis.pubsub() as subscription:  # type: ignore[no-untyped-call]
            subscription.subscribe(self._channel)
            while not self._closed.is_set():
                message = subscription.get_message(timeout=POLL_SECONDS)
                if message is None:
                    continue
                if message["type"] == "subscribe":
                    self._on_gap()
                elif message["type"] == "message":
                    self._on_message(message["data"])
