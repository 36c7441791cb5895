"""Statements on the outbox."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Row, and_, case, delete, func, select, update
from sqlalchemy.orm import Session

from app.mail.models import IS_NEW_SIGN_IN, IS_NOTICE, MailStatus, OutboxMail
from app.store import bulk
from app.store.paging import Page, Paging, read_items, rows_of

UNFINISHED = (MailStatus.SENDING, MailStatus.QUEUED)
FINISHED = (MailStatus.SENT, MailStatus.FAILED)
MOST_COMPARED = 20


class Waiting(NamedTuple):
    """How many mails have one status, the earliest due time, and when the oldest was queued."""

    status: str
    mails: int
    first_due_at: datetime
    first_created_at: datetime


def find_notice(
    session: Session, recipient: str, topic: str, since: datetime, now: datetime
) -> OutboxMail | None:
    """Return the last notice about a topic that was queued in a span of time; None if none was."""
    of_topic = IS_NOTICE, OutboxMail.recipient == recipient, OutboxMail.topic == topic
    within = OutboxMail.created_at > since, OutboxMail.created_at <= now
    newest = select(OutboxMail).where(*of_topic, *within).order_by(OutboxMail.created_at.desc())
    return session.scalars(newest.limit(1)).one_or_none()


def find_gathered(
    session: Session, recipient: str, topic: str, since: datetime
) -> OutboxMail | None:
    """Return the waiting notice that gathers changes of a topic, locked; None if there is none."""
    of_topic = IS_NOTICE, OutboxMail.recipient == recipient, OutboxMail.topic == topic
    waiting = OutboxMail.status == MailStatus.QUEUED, OutboxMail.created_at >= since
    newest = select(OutboxMail).where(*of_topic, *waiting).order_by(OutboxMail.created_at.desc())
    return session.scalars(newest.limit(1).with_for_update()).one_or_none()


def count_sign_ins(session: Session, topic: str, since: datetime, until: datetime) -> int:
    """Return how many mails about new sign-ins of a topic were queued in a span of time."""
    within = OutboxMail.created_at > since, OutboxMail.created_at <= until
    counted = select(func.count()).where(IS_NEW_SIGN_IN, OutboxMail.topic == topic, *within)
    return int(session.execute(counted).scalar_one())


def is_any_due(
    session: Session,
    status: MailStatus,
    *,
    after: datetime | None = None,
    until: datetime | None = None,
) -> bool:
    """Return whether a mail of this status is due within these bounds, one of which is given."""
    bound = OutboxMail.due_at > after if after else OutboxMail.due_at <= until
    statement = select(OutboxMail.id).where(OutboxMail.status == status, bound)
    return session.scalar(statement.order_by(OutboxMail.due_at).limit(1)) is not None


def reschedule(session: Session, status: MailStatus, *, after: datetime, due_at: datetime) -> int:
    """Make mails of this status that are due after a time due at another; return how many."""
    late = OutboxMail.status == status, OutboxMail.due_at > after
    return bulk.change(session, update(OutboxMail).where(*late).values(due_at=due_at))


def lease_next(
    session: Session, lease: str, *, due: datetime, until: datetime, exclude_recipient: str | None
) -> OutboxMail | None:
    """Lease, until `until`, the mail that has been due longest at `due`; None if none is due.

    Of several concurrent senders only one gets a mail. Mails whose lease has expired come first.
    With `exclude_recipient`, mails to that address are excluded, and those that never failed come
    first: past mails that failed before, which are few among those due, as each backs off. A mail
    that is hurried uses up no try, unless its sender dies.
    """
    choices: list[list[ColumnElement[bool]]] = [[OutboxMail.status == one] for one in UNFINISHED]
    if exclude_recipient is not None:
        choices.insert(0, [OutboxMail.status == MailStatus.QUEUED, OutboxMail.last_error.is_(None)])
        choices = [[*one, OutboxMail.recipient != exclude_recipient] for one in choices]
    for conditions in choices:
        first = select(OutboxMail.id).where(*conditions, OutboxMail.due_at <= due)
        first = first.order_by(OutboxMail.due_at).limit(1).with_for_update(skip_locked=True)
        leasing = update(OutboxMail).where(OutboxMail.id == first.scalar_subquery())
        is_by_hand = and_(OutboxMail.is_hurried, OutboxMail.status == MailStatus.QUEUED)
        leasing = leasing.values(
            status=MailStatus.SENDING,
            lease=lease,
            due_at=until,
            attempts=OutboxMail.attempts + case((is_by_hand, 0), else_=1),
            is_hurried=is_by_hand,
        )
        leasing = leasing.returning(OutboxMail).execution_options(synchronize_session=False)
        if (mail := session.scalars(leasing).one_or_none()) is not None:
            return mail
    return None


def find_leased(session: Session, leased: OutboxMail) -> OutboxMail | None:
    """Return a mail, locked, if it is still under the lease that it was sent under."""
    mine = OutboxMail.id == leased.id, OutboxMail.lease == leased.lease
    return session.scalars(select(OutboxMail).where(*mine).with_for_update()).one_or_none()


def count_unfinished(session: Session) -> int:
    """Return how many mails have yet to be sent."""
    waiting = OutboxMail.status.in_(UNFINISHED)
    return int(session.execute(select(func.count()).where(waiting)).scalar_one())


def list_unsent(session: Session) -> list[Waiting]:
    """Return the mails yet to be sent or given up, summarised by status."""
    of_interest = OutboxMail.status.in_((*UNFINISHED, MailStatus.FAILED))
    first = func.min(OutboxMail.due_at), func.min(OutboxMail.created_at)
    columns = OutboxMail.status, func.count(), *first
    statement = select(*columns).where(of_interest).group_by(OutboxMail.status)
    return [Waiting(*row) for row in session.execute(statement)]


def read_page(session: Session, paging: Paging, *conditions: ColumnElement[bool]) -> Page:
    """Return a page of mails, newest first."""
    columns = {"id": OutboxMail.id, "created_at": OutboxMail.created_at}
    matching = select(OutboxMail.id).where(*conditions)
    return read_items(session, matching, columns, paging, rows_of(session, OutboxMail))


def hurry(session: Session, now: datetime, mail_id: str | None = None) -> None:
    """Have a waiting mail, or all of them, tried now because an operator asks for it.

    What is being sent, or was, stays as it is.
    """
    waiting = update(OutboxMail).where(OutboxMail.status == MailStatus.QUEUED)
    if mail_id is not None:
        waiting = waiting.where(OutboxMail.id == mail_id)
    due_at = case((OutboxMail.due_at > now, now), else_=OutboxMail.due_at)
    bulk.change(session, waiting.values(due_at=due_at, is_hurried=True))


def list_refusals(session: Session, now: datetime, *, except_for: str) -> Sequence[Row[str, str]]:
    """Return the recipients, but for one, whose mails were the last to fail, and the errors.

    Those that still wait and, unless a mail was sent since, the last one that was given up.
    """
    error = func.coalesce(OutboxMail.last_error, "")
    refused = select(OutboxMail.recipient, error).where(
        OutboxMail.recipient != except_for, OutboxMail.last_error.is_not(None)
    )
    sent_at = select(func.max(OutboxMail.due_at)).where(
        OutboxMail.status == MailStatus.SENT, OutboxMail.due_at <= now
    )
    last = session.scalar(sent_at)
    since = [OutboxMail.due_at > last] if last is not None else []
    found: list[Row[str, str]] = []
    for conditions, most in (
        ([OutboxMail.status == MailStatus.QUEUED], MOST_COMPARED),
        ([OutboxMail.status == MailStatus.FAILED, *since], 1),
    ):
        newest = refused.where(*conditions).order_by(OutboxMail.due_at.desc()).limit(most)
        found += session.execute(newest).all()
    return found


def list_sealed(session: Session, after_id: str, most: int) -> Sequence[OutboxMail]:
    """Return up to `most` mails, locked, that still have a payload, with ids above `after_id`."""
    sealed = OutboxMail.payload.is_not(None), OutboxMail.id > after_id
    page = select(OutboxMail).where(*sealed).order_by(OutboxMail.id).limit(most)
    return session.scalars(page.with_for_update()).all()


def delete_finished(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` mails that were finished before `before`; return how many."""
    old = OutboxMail.status.in_(FINISHED), OutboxMail.due_at < before
    outdated = select(OutboxMail.id).where(*old).limit(most)
    return bulk.change(session, delete(OutboxMail).where(OutboxMail.id.in_(outdated)))
