"""Listens on Redis channels for as long as the process lives."""

import logging
import select
import socket
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
from app.core.redis import for_listening

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
RETRY_SECONDS = 0.3
# Messages that arrive together are delivered together, up to these limits.
MAX_MESSAGES = 256
MAX_CHARACTERS = 64 * 1024
# A Redis that hangs keeps its connections open, so it is pinged: after this many unanswered pings,
# about five seconds, the connection counts as lost.
MAX_UNANSWERED = 3


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

    `on_gap` is called when it is lost and whenever it is established, the first time included. The
    Redis client repairs a broken subscription silently, so each confirmation ends a gap.
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
        # Closing one end makes the other readable, which wakes the poll.
        self._wake_up, self._awake = socket.socketpair()
        self._thread.start()

    def close(self) -> None:
        """Stop listening; return once the subscription has ended, or if Redis is too slow."""
        self._closed.set()
        if self._thread.is_alive():
            self._wake_up.close()
            self._thread.join(timeout=2 * POLL_SECONDS)

    def _run(self) -> None:
        with self._awake, for_listening(self._redis) as redis:
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
        """Report that messages are missed from now on; only once, however long that lasts."""
        if self._is_lost:
            return
        log.warning("the subscription to %s was lost: %s", self._name, error)
        self._is_lost = True
        for channel in self._channels.values():
            self._call(channel.name, channel.on_gap)

    def _listen(self, redis: Redis) -> None:
        with redis.pubsub() as subscription:  # type: ignore[no-untyped-call]
            subscription.subscribe(*self._channels)
            has_more = False
            while not self._closed.is_set():
                if has_more or self._has_arrived(subscription):
                    messages, has_more = _arrived(subscription)
                    if any(message["type"] == "subscribe" for message in messages):
                        # redis-py would go on counting the pings of the previous connection.
                        subscription.health_check_response_counter = 0
                    self._hand_on(messages)
                elif subscription.health_check_response_counter >= MAX_UNANSWERED:
                    raise RedisConnectionError("Redis hangs")
                else:
                    subscription.check_health()

    def _has_arrived(self, subscription: Any) -> bool:
        """Wait briefly for something to read; False if nothing came, or when stopping."""
        connection = subscription.connection._get_socket()
        if connection is None:
            return True  # reading reconnects
        look = select.poll()
        look.register(connection, select.POLLIN)
        look.register(self._awake, select.POLLIN)
        ready = look.poll(POLL_SECONDS * 1000)
        return any(descriptor == connection.fileno() for descriptor, _ in ready)

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
            log.exception("messages of %s were not dealt with", name)


def _arrived(subscription: Any) -> tuple[list[dict[str, Any]], bool]:
    """Return the messages that have arrived, and whether there may be more of them."""
    messages: list[dict[str, Any]] = []
    characters = 0
    while len(messages) < MAX_MESSAGES and characters < MAX_CHARACTERS:
        # A shorter timeout would give up a message of which only a part has arrived, and drop the
        # connection with it.
        message = subscription.get_message(timeout=POLL_SECONDS)
        if message is not None:
            messages.append(message)
            characters += len(message["data"]) if message["type"] == "message" else 0
        if not subscription.connection.can_read(timeout=0):
            return messages, False
    return messages, True
