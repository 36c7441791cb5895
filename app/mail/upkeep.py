"""What is done to the outbox as a whole: finished mails forgotten, waiting ones re-encrypted."""

from datetime import timedelta

from sqlalchemy.orm import Session

from app.core import bulk
from app.core.runtime import Runtime
from app.mail import payload, queries

KEPT = timedelta(days=7)


def delete_finished(rt: Runtime) -> int:
    """Delete mails that were sent or given up a week ago; return how many."""
    before = rt.clock.now() - KEPT
    return bulk.delete_in_batches(
        rt, lambda session, most: queries.delete_finished(session, before, most)
    )


def reseal(rt: Runtime, session: Session) -> int:
    """Encrypt what waiting mails hold under the newest key; return how many changed."""
    changed = 0
    for mail_id, sealed in queries.list_sealed(session):
        fresh = payload.resealed(rt.secret_box, mail_id, sealed)
        if fresh is not None:
            changed += queries.replace_payload(session, mail_id, sealed, fresh)
    return changed
