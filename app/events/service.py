"""Publishing storage events: what the file side of the product, or an operator, does."""

from app.core.redis import EVENTS_CHANNEL
from app.core.runtime import Runtime
from app.events.errors import EventTooLarge
from app.events.messages import LONGEST_MESSAGE, Audience, Message, StorageEvent


def publish(rt: Runtime, audience: Audience, event: StorageEvent) -> Message:
    """Tell every process at once; nothing is stored, so who is not connected hears nothing.

    Not within a transaction: a page that hears of a change looks at it right away.
    Raises: EventTooLarge; RedisError when the event could not be published.
    """
    message = Message(audience, event)
    text = message.text()
    if len(text) > LONGEST_MESSAGE:
        raise EventTooLarge
    rt.redis.publish(EVENTS_CHANNEL, text)
    return message
