"""Who publishes events, and who listens."""

import time
from typing import Any

from redis.exceptions import RedisError

from app.events.messages import Audience, Kind, Message, StorageEvent
from app.store.redis import EVENTS_CHANNEL, connect
from deploy.bed.actors.actor import AccountHolder, Actor
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.streams import OpenStream


class Publisher(Actor):
    """Publishes numbered events as the file service does."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger, "publisher")
        self.number = 0
        # Events of which the outcome is unknown; `progress` is the last that Redis acknowledged.
        self.unclear: set[int] = set()
        self._redis = connect(bed.valkey.url, timeout_seconds=0.5, retries=0)

    def step(self) -> None:
        """Publish the next number."""
        self.number += 1
        now = self.bed.rt.clock.now()
        event = StorageEvent(Kind.FILE_CREATED, {"kind": "personal"}, now, file_ids=(self.number,))
        try:
            self._redis.publish(EVENTS_CHANNEL, Message(Audience(), event).text())
            self.progress = self.number
        except RedisError:
            self.unclear.add(self.number)
        self.stopped.wait(0.05)

    def close(self) -> None:
        super().close()
        self._redis.close()


class Listener(AccountHolder):
    """Keeps a stream open; must not miss an event without being told to synchronise.

    Published events, and gaps, must reach it within `patience` seconds, which is longer than any
    fault. An open stream alone is no progress: only events are.
    """

    def __init__(self, bed: Bed, ledger: Ledger, publisher: Publisher, patience: float) -> None:
        super().__init__(bed, ledger)
        self._publisher, self._patience = publisher, patience
        self._stream: OpenStream | None = None
        # The last event seen; None when any number of events may have been missed.
        self.last: int | None = None
        # The deadline for being told of a gap; None while there is none.
        self._sync_by: float | None = None
        self.events = 0
        # The newest event heard; a published one to wait for, and the deadline for hearing it.
        self._heard = self._awaited = 0
        self._hear_by = 0.0

    def step(self) -> None:
        """Read for a moment, or reopen the stream."""
        if self._stream is None:
            self.open()
        else:
            self.read(self._stream)
        self.progress = self.events
        self.check_in_time()

    def read(self, stream: OpenStream) -> None:
        """Take the events that arrive within a moment."""
        try:
            for event in stream.events_for(0.3):
                self.take(event)
        except OSError:
            stream.has_ended = True
        if stream.has_ended:
            stream.close()
            self._stream, self.last, self._sync_by = None, None, None

    def take(self, event: dict[str, Any]) -> None:
        """Check that events missed since the last one are, or soon will be, reported as a gap."""
        if event["kind"] == "sync.required":
            self.last = self._sync_by = None
            return
        [number] = event["file_ids"]
        self.events += 1
        self._heard = max(self._heard, number)
        if self.last is not None:
            missed = set(range(self.last + 1, number)) - self._publisher.unclear
            self.check(self.last < number, f"heard {number} after {self.last}")
            if missed and self._sync_by is None:
                self._sync_by = time.monotonic() + self._patience
        self.last = number

    def check_in_time(self) -> None:
        """Complain if a gap was not reported in time, or nothing is heard any more."""
        now = time.monotonic()
        if self._sync_by is not None and now > self._sync_by:
            self.check(holds=False, what=f"was not told of the gap before {self.last}")
            self._sync_by = None
        if self._heard >= self._awaited:
            self._awaited, self._hear_by = self._publisher.progress, now + self._patience
        elif now > self._hear_by:
            self.check(holds=False, what=f"has not heard {self._awaited}, nor anything since")
            self._hear_by = now + self._patience

    def open(self) -> None:
        """Sign in if necessary, and open the stream."""
        answer = self.call("GET", "/auth/me") if self.is_signed_in else self.sign_in()
        if answer.status == 200:
            stream = OpenStream(self.client)
            if stream.status == 200:
                self._stream = stream
                return
            stream.close()
            self.check(stream.status in {204, 503}, f"no stream: {stream.status}")
        elif answer.status < 500 and self.is_signed_in:
            self.leave(answer)
        self.stopped.wait(0.3)

    def close(self) -> None:
        super().close()
        if self._stream is not None:
            self._stream.close()
