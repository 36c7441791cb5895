"""Telling every process that sessions ended, for what outlasts a request, such as a stream.

The message only says whose sessions to look at again: the database alone decides what has ended,
so a message that is lost, or made up, does no harm.
"""

from sqlalchemy.orm import Session

from app.core.database.after_commit import after_commit
from app.core.redis import SESSIONS_CHANNEL
from app.core.runtime import Runtime


def announce(rt: Runtime, session: Session, user_id: int) -> None:
    """Tell it once the running transaction is committed."""
    after_commit(session, lambda: rt.deferred_writes.publish(SESSIONS_CHANNEL, str(user_id)))
