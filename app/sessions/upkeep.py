"""Clean-up of expired sessions."""

from app.core.database import bulk
from app.core.runtime import Runtime
from app.sessions import queries


def delete_expired(rt: Runtime) -> int:
    """Delete sessions whose tokens have all expired; return how many."""
    now = rt.clock.now()
    return bulk.delete_in_batches(rt, queries.delete_expired, now)
