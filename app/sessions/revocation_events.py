"""Notifies every process that sessions ended, for what outlives a request, such as an event stream.

The message only names the user whose sessions to recheck: the database alone decides what has
ended, so a lost or forged message does no harm.
"""

from sqlalchemy.orm import Session

from app.core.database.after_commit import after_commit
from app.core.redis import SESSIONS_CHANNEL
from app.core.runtime import Runtime


def publish_after_commit(rt: Runtime, session: Session, user_id: int) -> None:
    """Publish the user's id once the running transaction is committed."""

    def publish() -> None:
        rt.fail_fast_breaker.attempt(lambda redis: redis.publish(SESSIONS_CHANNEL, str(user_id)))

    after_commit(session, publish)
