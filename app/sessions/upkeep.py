"""What an operator, not the owner, does to sessions."""

import uuid

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.runtime import Runtime
from app.sessions import queries
from app.sessions.errors import SessionNotFound

DELETED_AT_ONCE = 500


def revoke(rt: Runtime, session_id: str) -> int:
    """End anybody's session; return 0 if it had ended before.

    Raises: SessionNotFound.
    """
    try:
        session_id = str(uuid.UUID(session_id))
    except ValueError:
        raise SessionNotFound from None
    with rt.transaction() as session:
        owner = queries.find_owner(session, session_id)
        if owner is None:
            raise SessionNotFound
        if not queries.revoke(session, session_id, rt.clock.now()):
            return 0
        audit.record(
            rt,
            session,
            Action.USER_REVOKE_SESSION,
            EntityType.AUTH_SESSION,
            details={"session_id": session_id, "user_id": owner},
        )
    return 1


def delete_expired(rt: Runtime) -> int:
    """Delete sessions whose tokens have all expired; return how many.

    Each batch is a transaction of its own, so that nobody waits long for the table.
    """
    deleted, now = 0, rt.clock.now()
    while True:
        with rt.transaction() as session:
            batch = queries.delete_expired(session, now, DELETED_AT_ONCE)
        deleted += batch
        if not batch:
            return deleted
        rt.clock.sleep(0)
