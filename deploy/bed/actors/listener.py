"""A page that keeps an event stream open."""

import time
from typing import Any

from deploy.bed.actors.actor import EXPIRED, AccountHolder
from deploy.bed.actors.publisher import Publisher
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.factories import KnownUser
from tests.support.streams import OpenStream


class Listener(AccountHolder):
    """Keeps a stream open; must not miss an event without being told to synchronise.

    Published events, and gaps, must reach it within `patience` seconds, which is longer than any
    fault.
    """

    def __init__(
        self, bed: Bed, ledger: Ledger, user: KnownUser, publisher: Publisher, patience: float
    ) -> None:
        super().__init__(bed, ledger, user)
        self._publisher = publisher
        self._patience = patience
        self._stream: OpenStream | None = None
        # The last event seen; None when any number of events may have been missed.
        self.last: int | None = None
        # The deadline for being told of a gap; None while there is none.
        self._sync_by: float | None = None
        self.events = 0
        # The newest event heard; a published one to wait for, and the deadline for hearing it.
        self._heard = self._awaited = 0
        self._hear_by = 0.0

    @property
    def progress(self) -> int:
        """How many events it has heard; an open stream alone is no progress."""
        return self.events

    def step(self) -> None:
        """Read for a moment, or reopen the stream."""
        if self._stream is None:
            self.open()
        else:
            self.read(self._stream)
        self.check_in_time()

    def read(self, stream: OpenStream) -> None:
        """Take the events that arrive within a moment."""
        try:
            events = stream.events_for(0.3)
        except OSError:
            events = []
            stream.has_ended = True
        for event in events:
            self.take(event)
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
            self._awaited, self._hear_by = self._publisher.acknowledged, now + self._patience
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
            self.check(answer.code == EXPIRED, f"is out without a reason: {answer}")
            self.forget()
        self.stopped.wait(0.3)

    def close(self) -> None:
        """Close the connection and the stream."""
        super().close()
        if self._stream is not None:
            self._stream.close()
