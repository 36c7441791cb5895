"""Statements on the outbox."""

from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import Column, Connection, Table, bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from app.core import bulk
from app.mail.models import MailStatus, OutboxMail

Reader = Connection | Session

# Statements that run once per mail spare themselves the way through the ORM.
MAILS = cast("Table", OutboxMail.__table__)
_ADD = insert(MAILS)
UNFINISHED = (MailStatus.SENDING, MailStatus.QUEUED)
FINISHED = (MailStatus.SENT, MailStatus.FAILED)


class Leased(NamedTuple):
    """A mail that is being sent; `attempts` includes the one that begins."""

    id: str
    template: str
    recipient: str
    payload: str
    attempts: int


class Listed(NamedTuple):
    """A mail without what may hold a token."""

    id: str
    template: str
    recipient: str
    status: str
    attempts: int
    last_error: str | None
    created_at: datetime
    due_at: datetime
    finished_at: datetime | None


class Sealed(NamedTuple):
    """What a mail that has yet to leave is made of."""

    id: str
    payload: str


def _columns(row: type[tuple[Any, ...]]) -> list[Column[Any]]:
    """Return the table's columns that a row of this type is made of."""
    return [MAILS.c[name] for name in row._fields]  # type: ignore[attr-defined]


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
    .returning(*_columns(Leased))
)


def add(
    session: Session, mail_id: str, template: str, recipient: str, payload: str, now: datetime
) -> None:
    """Write a mail that is due at once."""
    values = {
        "id": mail_id,
        "template": template,
        "recipient": recipient,
        "payload": payload,
        "status": MailStatus.QUEUED,
        "attempts": 0,
        "created_at": now,
        "due_at": now,
    }
    session.connection().execute(_ADD, values)


def is_any_due(reader: Reader, now: datetime) -> bool:
    """Tell whether `claim` would find a mail."""
    waiting = OutboxMail.status.in_(UNFINISHED), OutboxMail.due_at <= now
    return reader.execute(select(OutboxMail.id).where(*waiting).limit(1)).first() is not None


def claim(session: Session, lease: str, *, due: datetime, until: datetime) -> Leased | None:
    """Lease the mail that has been due longest until a moment; None when none is due.

    One statement, so of several senders one gets it. A mail whose sender has not been heard of
    since its lease ran out comes first.
    """
    values = {"new_lease": lease, "due": due, "until": until}
    row = session.connection().execute(_CLAIM, values).one_or_none()
    return Leased(*row) if row else None


def settle_finished(
    session: Session,
    mail_id: str,
    lease: str,
    *,
    status: MailStatus,
    attempts: int,
    error: str | None,
    now: datetime,
) -> bool:
    """Write down that a mail was sent or given up; False when it is no longer this attempt's.

    `due_at` becomes the end, too, by which `delete_finished` finds it in the index.
    """
    return _settle(
        session,
        mail_id,
        lease,
        status=status,
        attempts=attempts,
        last_error=error,
        payload=None,
        finished_at=now,
        due_at=now,
    )


def settle_retry(
    session: Session, mail_id: str, lease: str, *, attempts: int, error: str | None, due: datetime
) -> bool:
    """Write down that a mail is to be tried again; False when it is no longer this attempt's."""
    return _settle(
        session,
        mail_id,
        lease,
        status=MailStatus.QUEUED,
        attempts=attempts,
        last_error=error,
        due_at=due,
    )


def _settle(session: Session, mail_id: str, lease: str, **columns: Any) -> bool:
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


def list_newest(reader: Reader, status: str | None, most: int) -> list[Listed]:
    """Return up to `most` mails, the newest first; a status of None means every one."""
    newest_first = OutboxMail.created_at.desc(), OutboxMail.id
    statement = select(*_columns(Listed)).order_by(*newest_first).limit(most)
    if status is not None:
        statement = statement.where(OutboxMail.status == status)
    return [Listed(*row) for row in reader.execute(statement)]


def list_sealed(session: Session) -> list[Sealed]:
    """Return every mail that still has a payload."""
    statement = select(*_columns(Sealed)).where(OutboxMail.payload.is_not(None))
    return [Sealed(*row) for row in session.execute(statement)]


def replace_payload(session: Session, mail_id: str, old: str, new: str) -> int:
    """Change a payload that is still the old one; return how many were."""
    statement = update(OutboxMail).where(OutboxMail.id == mail_id, OutboxMail.payload == old)
    return bulk.count_changed(session, statement.values(payload=new))


def delete_finished(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` mails that were finished before a moment; return how many."""
    old = OutboxMail.status.in_(FINISHED), OutboxMail.due_at < before
    outdated = select(OutboxMail.id).where(*old).limit(most)
    return bulk.count_changed(session, delete(OutboxMail).where(OutboxMail.id.in_(outdated)))
