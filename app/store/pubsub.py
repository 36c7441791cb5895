"""Listens on Redis channels for as long as the process lives."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from app.core.clock import Clock
from app.store.redis import for_listening

log = logging.getLogger(__name__)

# A stop takes as long as this at most.
POLL_SECONDS = 0.25
RETRY_SECONDS = 0.3
# Messages that arrive together are delivered together, up to these limits.
MAX_MESSAGES = 256
MAX_CHARACTERS = 64 * 1024
# A Redis that hangs keeps its connections open. It is pinged at each poll once it has said nothing
# for two seconds; after this many unanswered pings, three seconds, the connection counts as lost.
MAX_UNANSWERED = 12


@dataclass(frozen=True)
class Channel:
    """What to do with one channel's messages, in order, and when some may have been missed.

    While a callback runs, further messages wait in Redis.
    """

    name: str
    on_messages: Callable[[list[str]], None]
    on_gap: Callable[[], None]


class Listener:
    """One subscription to some channels, renewed whenever it is lost.

    `on_gap` is called when it is lost and whenever it is established, the first time included.
    """

    def __init__(self, redis: Redis, clock: Clock, channels: Sequence[Channel]) -> None:
        self._redis = redis
        self._clock = clock
        self._channels = {channel.name: channel for channel in channels}
        self._closed = threading.Event()
        self._is_lost = True
        self._name = " and ".join(self._channels)
        self._thread = threading.Thread(target=self._run, name=f"listen {self._name}", daemon=True)

    def start(self) -> None:
        """Start listening in the background."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening; return once the subscription has ended, or if Redis is too slow."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(timeout=8 * POLL_SECONDS)

    def _run(self) -> None:
        with for_listening(self._redis) as redis:
            while not self._closed.is_set():
                try:
                    self._listen(redis)
                except Exception as error:
                    # Whatever it is, the thread must survive: nothing restarts it.
                    if not isinstance(error, RedisError | OSError):
                        log.exception("listening to %s failed", self._name)
                    self._note_loss(error)
                    self._clock.sleep(RETRY_SECONDS)

    def _note_loss(self, error: Exception) -> None:
        """Report that messages are missed from now on; only once, and not when it ends."""
        if self._is_lost or self._closed.is_set():
            return
        log.warning("the subscription to %s was lost: %s", self._name, error)
        self._is_lost = True
        for channel in self._channels.values():
            self._call(channel.name, channel.on_gap)

    def _listen(self, redis: Redis) -> None:
        with redis.pubsub() as subscription:  # type: ignore[no-untyped-call]
            subscription.subscribe(*self._channels)
            while not self._closed.is_set():
                self._hand_on(_arrived(subscription))
                if subscription.health_check_response_counter > MAX_UNANSWERED:
                    raise RedisConnectionError("Redis hangs")

    def _hand_on(self, messages: list[dict[str, Any]]) -> None:
        for (kind, name), group in groupby(messages, key=lambda m: (m["type"], m["channel"])):
            channel = self._channels[name]
            if kind == "subscribe":
                self._is_lost = False
                self._call(name, channel.on_gap)
            elif kind == "message":
                texts = [message["data"] for message in group]
                self._call(name, partial(channel.on_messages, texts))

    def _call(self, name: str, deal: Callable[[], None]) -> None:
        try:
            deal()
        except Exception:
            # Nothing restarts this thread.
            log.exception("messages on %s could not be handled", name)


def _arrived(subscription: Any) -> list[dict[str, Any]]:
    """Wait briefly for messages, and return those that have arrived."""
    messages: list[dict[str, Any]] = []
    characters = 0
    while len(messages) < MAX_MESSAGES and characters < MAX_CHARACTERS:
        message = subscription.get_message(timeout=0.0 if messages else POLL_SECONDS)
        if message is None:
            break
        messages.append(message)
        characters += len(str(message["data"]))
    return messages
