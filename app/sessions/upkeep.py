"""What an operator, not the owner, does to sessions."""

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.database import bulk
from app.core.runtime import Runtime
from app.sessions import endings, queries, revocation
from app.sessions.errors import SessionNotFound
from app.users import queries as users_queries


def revoke(rt: Runtime, session_id: str) -> int:
    """End anybody's session; return 0 if it had ended before.

    Raises: SessionNotFound.
    """
    session_id = revocation.canonical_id(session_id)
    with rt.transaction() as session:
        owner = queries.find_owner(session, session_id)
        if owner is None:
            raise SessionNotFound
        users_queries.lock_version(session, owner)
        if not queries.revoke(session, session_id, rt.clock.now()):
            return 0
        users_queries.drop_pending_email(session, owner)
        endings.announce(rt, session, owner)
        event = Event(
            Action.USER_REVOKE_SESSION,
            EntityType.AUTH_SESSION,
            details={"session_id": session_id, "user_id": owner},
        )
        audit.record(rt, session, event)
    return 1


def delete_expired(rt: Runtime) -> int:
    """Delete sessions whose tokens have all expired; return how many."""
    now = rt.clock.now()
    return bulk.delete_in_batches(rt, queries.delete_expired, now)
