"""Publishing storage events, as the file service or an operator does."""

from app.core.redis import EVENTS_CHANNEL
from app.core.runtime import Runtime
from app.events.errors import EventTooLarge
from app.events.messages import MAX_MESSAGE_LENGTH, Audience, Message, StorageEvent


def publish(rt: Runtime, audience: Audience, event: StorageEvent) -> Message:
    """Publish an event to every process; it is not stored, so clients not connected miss it.

    Call it after the commit: a page that hears of a change fetches it right away.
    Raises: EventTooLarge; RedisError if the event could not be published.
    """
    message = Message(audience, event)
    text = message.text()
    if len(text) > MAX_MESSAGE_LENGTH:
        raise EventTooLarge
    rt.redis.client.publish(EVENTS_CHANNEL, text)
    return message
