"""Statements on the outbox."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Connection, Table, bindparam, delete, func, select, update
from sqlalchemy.orm import Session

from app.core import bulk
from app.mail.models import MailStatus, OutboxMail

Reader = Connection | Session

# Statements that run once per mail spare themselves the way through the ORM.
MAILS = cast("Table", OutboxMail.__table__)
# Everything but what may hold a token.
SHOWN = [column for column in MAILS.c if column.name not in {"payload", "lease"}]
UNFINISHED = (MailStatus.SENDING, MailStatus.QUEUED)
FINISHED = (MailStatus.SENT, MailStatus.FAILED)


def _first_due(status: MailStatus) -> Any:
    return (
        select(MAILS.c.id)
        .where(MAILS.c.status == status, MAILS.c.due_at <= bindparam("due"))
        .order_by(MAILS.c.due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )


_CLAIM = (
    update(MAILS)
    # A select of its own per status: each reads one end of the index and no more.
    .where(MAILS.c.id == func.coalesce(*map(_first_due, UNFINISHED)))
    .values(
        status=MailStatus.SENDING,
        lease=bindparam("new_lease"),
        attempts=MAILS.c.attempts + 1,
        due_at=bindparam("until"),
    )
    .returning(*MAILS.c)
)


def is_any_due(reader: Reader, now: datetime) -> bool:
    """Tell whether `claim` would find a mail."""
    waiting = OutboxMail.status.in_(UNFINISHED), OutboxMail.due_at <= now
    return reader.execute(select(OutboxMail.id).where(*waiting).limit(1)).first() is not None


def claim(session: Session, lease: str, *, due: datetime, until: datetime) -> Any | None:
    """Lease the mail that has been due longest until a moment; None when none is due.

    One statement, so of several senders one gets it. A mail whose sender has not been heard of
    since its lease ran out comes first.
    """
    values = {"new_lease": lease, "due": due, "until": until}
    return session.connection().execute(_CLAIM, values).one_or_none()


def settle(session: Session, mail_id: str, lease: str, **columns: Any) -> bool:
    """Write down how an attempt ended; False when the mail is no longer this attempt's."""
    statement = update(MAILS).where(MAILS.c.id == mail_id, MAILS.c.lease == lease)
    result = session.connection().execute(statement.values(lease=None, **columns))
    return result.rowcount == 1


def hurry(session: Session, now: datetime) -> None:
    """Make every waiting mail due."""
    waiting = OutboxMail.status == MailStatus.QUEUED, OutboxMail.due_at > now
    bulk.count_changed(session, update(OutboxMail).where(*waiting).values(due_at=now))


def count_unfinished(reader: Reader) -> int:
    """Return how many mails have yet to leave."""
    waiting = OutboxMail.status.in_(UNFINISHED)
    return int(reader.execute(select(func.count()).where(waiting)).scalar_one())


def list_newest(reader: Reader, status: str | None, most: int) -> Sequence[Any]:
    """Return up to `most` mails, the newest first; a status of None means every one."""
    statement = select(*SHOWN).order_by(OutboxMail.created_at.desc(), OutboxMail.id).limit(most)
    if status is not None:
        statement = statement.where(OutboxMail.status == status)
    return reader.execute(statement).all()


def list_sealed(session: Session) -> Sequence[Any]:
    """Return id and payload of every mail that still has one."""
    columns = OutboxMail.id, OutboxMail.payload
    return session.execute(select(*columns).where(OutboxMail.payload.is_not(None))).all()


def replace_payload(session: Session, mail_id: str, old: str, new: str) -> int:
    """Change a payload that is still the old one; return how many were."""
    statement = update(OutboxMail).where(OutboxMail.id == mail_id, OutboxMail.payload == old)
    return bulk.count_changed(session, statement.values(payload=new))


def delete_finished(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` mails that were finished before a moment; return how many.

    `settle` is given the end as `due_at`, too, by which they are found in the index.
    """
    old = OutboxMail.status.in_(FINISHED), OutboxMail.due_at < before
    outdated = select(OutboxMail.id).where(*old).limit(most)
    return bulk.count_changed(session, delete(OutboxMail).where(OutboxMail.id.in_(outdated)))
