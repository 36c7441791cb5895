"""Statements on the outbox."""

from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Reader
from app.core.db import columns_of
from app.mail.models import IS_NOTICE, MailStatus, OutboxMail

# Statements that run once per mail bypass the ORM.
MAILS = cast("Table", OutboxMail.__table__)
UNFINISHED = (MailStatus.SENDING, MailStatus.QUEUED)
FINISHED = (MailStatus.SENT, MailStatus.FAILED)
MAX_NOTICES = 10


class Leased(NamedTuple):
    """A mail leased for sending; `attempts` includes the attempt that begins."""

    id: str
    template: str
    recipient: str
    payload: str
    attempts: int
    created_at: datetime


class Waiting(NamedTuple):
    """How many mails have one status, the earliest due time, and when the oldest was queued."""

    status: str
    mails: int
    first_due_at: datetime
    first_created_at: datetime


class ListedMail(NamedTuple):
    """A mail without its payload, which may hold a token."""

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
    """The encrypted payload of a mail yet to be sent."""

    id: str
    payload: str


def add(session: Session, **columns: Any) -> None:
    """Add a mail, due at once."""
    queued = {"due_at": columns["created_at"], "status": MailStatus.QUEUED, "attempts": 0}
    session.execute(insert(MAILS).values(columns | queued))


def may_get_notice(session: Session, recipient: str, since: datetime) -> bool:
    """Return whether an address may get another notice; it reads at most MAX_NOTICES."""
    recent = select(MAILS.c.id).where(
        IS_NOTICE, MAILS.c.recipient == recipient, MAILS.c.created_at > since
    )
    return len(session.scalars(recent.limit(MAX_NOTICES)).all()) < MAX_NOTICES


def is_any_due(reader: Reader, due: datetime) -> bool:
    """Return whether a mail is due; it reads one end of the index for each status."""
    return any(_has(reader, status, MAILS.c.due_at <= due) for status in UNFINISHED)


def is_any_stranded(reader: Reader, longest_lease: datetime, longest_pause: datetime) -> bool:
    """Return whether a mail is due later than any lease or back-off allows.

    The clock must have been set back then.
    """
    return _has(reader, MailStatus.SENDING, MAILS.c.due_at > longest_lease) or _has(
        reader, MailStatus.QUEUED, MAILS.c.due_at > longest_pause
    )


def _has(reader: Reader, status: MailStatus, condition: ColumnElement[bool]) -> bool:
    statement = select(MAILS.c.id).where(MAILS.c.status == status, condition)
    return reader.execute(statement.order_by(MAILS.c.due_at).limit(1)).first() is not None


def reschedule_stranded(
    session: Session,
    *,
    longest_lease: datetime,
    lease_until: datetime,
    longest_pause: datetime,
    now: datetime,
) -> int:
    """Reschedule mails that are due later than any lease or back-off allows; return how many.

    A lease keeps its holder, who may be alive, and expires at `lease_until`; a back-off ends now.
    """
    leases = update(OutboxMail).where(
        OutboxMail.status == MailStatus.SENDING, OutboxMail.due_at > longest_lease
    )
    pauses = update(OutboxMail).where(
        OutboxMail.status == MailStatus.QUEUED, OutboxMail.due_at > longest_pause
    )
    return bulk.change(session, leases.values(due_at=lease_until)) + bulk.change(
        session, pauses.values(due_at=now)
    )


def lease_next(
    session: Session, lease: str, *, due: datetime, until: datetime, exclude_recipient: str | None
) -> Leased | None:
    """Lease, until `until`, the mail that has been due longest at `due`; None if none is due.

    Of several concurrent senders only one gets a mail. Mails whose lease has expired come first.
    With `exclude_recipient`, mails to that address are excluded, and those that never failed come
    first: past mails that failed before, which are few among those due, as each backs off.
    """
    choices: list[list[ColumnElement[bool]]] = [[MAILS.c.status == one] for one in UNFINISHED]
    if exclude_recipient is not None:
        choices.insert(0, [MAILS.c.status == MailStatus.QUEUED, MAILS.c.last_error.is_(None)])
        choices = [[*one, MAILS.c.recipient != exclude_recipient] for one in choices]
    for conditions in choices:
        first = select(MAILS.c.id).where(*conditions, MAILS.c.due_at <= due)
        first = first.order_by(MAILS.c.due_at).limit(1).with_for_update(skip_locked=True)
        if (mail_id := session.scalar(first)) is not None:
            break
    else:
        return None
    leasing = update(MAILS).where(MAILS.c.id == mail_id)
    values = {"status": MailStatus.SENDING, "lease": lease, "due_at": until}
    leasing = leasing.values(values | {"attempts": MAILS.c.attempts + 1})
    row = session.execute(leasing.returning(*columns_of(Leased, MAILS.c))).one()
    return Leased(*row)


def settle(session: Session, mail_id: str, lease: str, **columns: Any) -> bool:
    """Record how an attempt ended; False if it has lost its lease."""
    mine = update(OutboxMail).where(OutboxMail.id == mail_id, OutboxMail.lease == lease)
    return bulk.change(session, mine.values(lease=None, **columns)) == 1


def make_all_due(session: Session, now: datetime) -> None:
    """Make every queued mail due now."""
    waiting = OutboxMail.status == MailStatus.QUEUED, OutboxMail.due_at > now
    bulk.change(session, update(OutboxMail).where(*waiting).values(due_at=now))


def count_unfinished(reader: Reader) -> int:
    """Return how many mails have yet to be sent."""
    waiting = OutboxMail.status.in_(UNFINISHED)
    return int(reader.execute(select(func.count()).where(waiting)).scalar_one())


def list_unsent(reader: Reader) -> list[Waiting]:
    """Return the mails yet to be sent or given up, summarised by status."""
    of_interest = OutboxMail.status.in_((*UNFINISHED, MailStatus.FAILED))
    first = func.min(OutboxMail.due_at), func.min(OutboxMail.created_at)
    columns = OutboxMail.status, func.count(), *first
    statement = select(*columns).where(of_interest).group_by(OutboxMail.status)
    return [Waiting(*row) for row in reader.execute(statement)]


def list_newest(reader: Reader, status: str | None, most: int) -> list[ListedMail]:
    """Return up to `most` mails, newest first; a status of None means any."""
    newest_first = OutboxMail.created_at.desc(), OutboxMail.id
    statement = select(*columns_of(ListedMail, MAILS.c)).order_by(*newest_first).limit(most)
    if status is not None:
        statement = statement.where(OutboxMail.status == status)
    return [ListedMail(*row) for row in reader.execute(statement)]


def list_sealed(session: Session, after_id: str, most: int) -> list[Sealed]:
    """Return up to `most` mails that still have a payload, with ids above `after_id`."""
    statement = select(*columns_of(Sealed, MAILS.c)).where(OutboxMail.payload.is_not(None))
    page = statement.where(OutboxMail.id > after_id).order_by(OutboxMail.id).limit(most)
    return [Sealed(*row) for row in session.execute(page)]


def replace_payload(session: Session, mail_id: str, old: str, new: str) -> int:
    """Replace a payload if it is still the old one; return the number of rows changed."""
    statement = update(OutboxMail).where(OutboxMail.id == mail_id, OutboxMail.payload == old)
    return bulk.change(session, statement.values(payload=new))


def delete_finished(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` mails that were finished before `before`; return how many."""
    old = OutboxMail.status.in_(FINISHED), OutboxMail.due_at < before
    outdated = select(OutboxMail.id).where(*old).limit(most)
    return bulk.change(session, delete(OutboxMail).where(OutboxMail.id.in_(outdated)))
