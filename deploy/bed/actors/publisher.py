"""The file service, as the source of storage events."""

from redis import Redis
from redis.exceptions import RedisError

from app.core.redis import EVENTS_CHANNEL
from app.events.messages import Audience, Kind, Message, StorageEvent
from deploy.bed.actors.actor import Actor
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger


class Publisher(Actor):
    """Publishes numbered events as the file service does."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger, "publisher")
        self.number = 0
        # The last event that Redis acknowledged, and those of which the outcome is unknown.
        self.acknowledged = 0
        self.unclear: set[int] = set()
        self._redis = Redis.from_url(bed.valkey.url, socket_timeout=0.5)

    def step(self) -> None:
        """Publish the next number."""
        self.number += 1
        now = self.bed.rt.clock.now()
        event = StorageEvent(Kind.FILE_CREATED, {"kind": "personal"}, now, file_ids=(self.number,))
        try:
            self._redis.publish(EVENTS_CHANNEL, Message(Audience(), event).text())
            self.acknowledged = self.number
        except RedisError:
            self.unclear.add(self.number)
        self.stopped.wait(0.05)

    @property
    def progress(self) -> int:
        """The last number that Redis acknowledged."""
        return self.acknowledged

    def close(self) -> None:
        super().close()
        self._redis.close()
