"""Clean-up of long-expired tokens."""

from datetime import timedelta

from app.contact_verification import queries
from app.core.database import bulk
from app.core.runtime import Runtime

# For this long a late click is answered "expired" rather than "invalid".
RETENTION = timedelta(days=7)


def delete_expired(rt: Runtime) -> int:
    """Delete tokens that expired a week ago; return how many."""
    before = rt.clock.now() - RETENTION
    return bulk.delete_in_batches(rt, queries.delete_expired, before)
