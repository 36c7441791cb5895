"""Outbox maintenance: fill level, deletion of finished mails, re-encryption of waiting ones."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Reader
from app.core.database.key_use import KeyUse
from app.core.runtime import Runtime
from app.core.secret_box import Resealed, Resealer
from app.mail import payload, queries
from app.mail.models import MailStatus, OutboxMail

RETENTION = timedelta(days=7)


@dataclass(frozen=True)
class Outbox:
    """The number of mails by status, and how long mails have been waiting, in seconds.

    `longest_due_seconds` restarts with each attempt, so it grows only while no sender is running.
    `oldest_seconds` is the age of the oldest mail yet to be sent, regardless of attempts.
    """

    counts: dict[MailStatus, int]
    longest_due_seconds: float
    oldest_seconds: float


def outbox(rt: Runtime, connection: Reader) -> Outbox:
    """Return the fill level of the outbox: mails yet to be sent, and mails given up."""
    found = {MailStatus(row.status): row for row in queries.list_unsent(connection)}
    counts = {
        status: found[status].mails if status in found else 0
        for status in (MailStatus.QUEUED, MailStatus.SENDING, MailStatus.FAILED)
    }
    waiting = found.get(MailStatus.QUEUED)
    now = rt.clock.now()
    due = (now - waiting.first_due_at).total_seconds() if waiting else 0.0
    unsent = [found[status] for status in queries.UNFINISHED if status in found]
    oldest = max(((now - one.first_created_at).total_seconds() for one in unsent), default=0.0)
    return Outbox(counts, max(0.0, due), max(0.0, oldest))


def delete_finished(rt: Runtime) -> int:
    """Delete mails that were sent or given up over a week ago; return how many."""
    before = rt.clock.now() - RETENTION
    return bulk.delete_in_batches(rt, queries.delete_finished, before)


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt the payloads of waiting mails under the newest key."""
    resealer, changed, last_id = Resealer(rt.secret_box), 0, ""
    while batch := queries.list_sealed(session, last_id, bulk.BATCH_ROWS):
        for mail_id, sealed in batch:
            fresh = resealer.resealed(sealed, payload.name_of(mail_id))
            if fresh is not None:
                changed += queries.replace_payload(session, mail_id, sealed, fresh)
            last_id = mail_id
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count the mails yet to be sent by the key their payload is encrypted with."""
    use.add_column(rt.secret_box, session, OutboxMail.payload, OutboxMail.id, payload.name_of)
