"""Statements on the outbox."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    null,
    select,
    true,
    update,
)
from sqlalchemy.orm import Session

from app.audit import queries as audit_queries
from app.core.database import bulk
from app.core.database.database import Database, Reader
from app.core.database.prepared import Prepared, constant
from app.core.db import columns_of
from app.mail.models import MailStatus, OutboxMail
from app.mail.templates import Template

# Statements that run once per mail bypass the ORM.
MAILS = cast("Table", OutboxMail.__table__)
UNFINISHED = (MailStatus.SENDING, MailStatus.QUEUED)
FINISHED = (MailStatus.SENT, MailStatus.FAILED)
NEW_COLUMNS = ("id", "template", "recipient", "payload", "created_at")
MAX_NOTICES = 10


class Leased(NamedTuple):
    """A mail leased for sending; `attempts` includes the attempt that begins."""

    id: str
    template: str
    recipient: str
    payload: str
    attempts: int
    created_at: datetime


class Attempt(NamedTuple):
    """Identifies one attempt at a mail; `made` is how many attempts count so far."""

    mail_id: str
    old_lease: str
    made: int


class PendingWork(NamedTuple):
    """What the dispatcher has to do.

    `has_stranded`: a mail is due later than any lease or back-off allows, so the clock must have
    been set back.
    """

    has_due: bool
    has_stranded: bool


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


def add_if(condition: ColumnElement[bool], *parameters: str) -> Prepared:
    """Return the statement that inserts a mail, due at once, if a condition holds.

    It takes the values of NEW_COLUMNS, then those of the condition's parameters.
    """
    values = [bindparam(name, type_=MAILS.c[name].type) for name in NEW_COLUMNS]
    fixed = {
        "due_at": bindparam("created_at", type_=MAILS.c.created_at.type),
        "status": constant(MailStatus.QUEUED),
        "attempts": constant(0),
    }
    source = select(*values, *fixed.values()).where(condition)
    statement = insert(MAILS).from_select([*NEW_COLUMNS, *fixed], source)
    return Prepared(statement, (*NEW_COLUMNS, *parameters))


def _first(status: MailStatus, *conditions: ColumnElement[bool]) -> Select[tuple[str]]:
    """Return a select of the mail with this status due first; it reads one end of the index."""
    of_status = select(MAILS.c.id).where(MAILS.c.status == constant(status), *conditions)
    # Without an explicit offset, SQLite's dialect would add one as a bind parameter.
    return of_status.order_by(MAILS.c.due_at).limit(constant(1)).offset(constant(0))


def _first_of(*selects: Select[tuple[str]]) -> ColumnElement[str]:
    return func.coalesce(*(one.scalar_subquery() for one in selects))


def _has_few_notices() -> ColumnElement[bool]:
    """Return the condition that an address may get another notice; it reads at most MAX_NOTICES."""
    recent = select(MAILS.c.id).where(
        MAILS.c.template == constant(Template.SECURITY_NOTICE),
        MAILS.c.recipient == bindparam("recipient"),
        MAILS.c.created_at > bindparam("since"),
    )
    most = recent.limit(constant(MAX_NOTICES)).offset(constant(0)).subquery()
    count = select(func.count()).select_from(most).scalar_subquery()
    return count < constant(MAX_NOTICES)


ADD = add_if(true())
ADD_NOTICE = add_if(_has_few_notices(), "since")
_IS_DUE = MAILS.c.due_at <= bindparam("due")
_IS_LEASE_STRANDED = MAILS.c.due_at > bindparam("longest_lease")
_IS_PAUSE_STRANDED = MAILS.c.due_at > bindparam("longest_pause")
CHECK_PENDING_WORK = Prepared(
    select(
        _first_of(*(_first(status, _IS_DUE) for status in UNFINISHED)),
        _first_of(
            _first(MailStatus.SENDING, _IS_LEASE_STRANDED),
            _first(MailStatus.QUEUED, _IS_PAUSE_STRANDED),
        ),
    ),
    ("due", "longest_lease", "longest_pause"),
)


def _lease_first_of(*selects: Select[tuple[str]], parameters: tuple[str, ...] = ()) -> Prepared:
    wanted = _first_of(*(one.with_for_update(skip_locked=True) for one in selects))
    values = {
        "status": constant(MailStatus.SENDING),
        "lease": bindparam("new_lease"),
        "attempts": MAILS.c.attempts + constant(1),
        "due_at": bindparam("until"),
    }
    leasing = update(MAILS).where(MAILS.c.id == wanted).values(values)
    returning = leasing.returning(*columns_of(Leased, MAILS.c))
    return Prepared(returning, ("due", "new_lease", "until", *parameters))


LEASE_NEXT = _lease_first_of(*(_first(status, _IS_DUE) for status in UNFINISHED))
_IS_TO_ANOTHER = MAILS.c.recipient != bindparam("exclude_recipient")
LEASE_ANOTHER = _lease_first_of(
    # This scans past mails that failed before, which are few among those due: each backs off.
    _first(MailStatus.QUEUED, _IS_DUE, _IS_TO_ANOTHER, MAILS.c.last_error.is_(None)),
    *(_first(status, _IS_DUE, _IS_TO_ANOTHER) for status in UNFINISHED),
    parameters=("exclude_recipient",),
)
_IS_THIS_ATTEMPT = (MAILS.c.id == bindparam("mail_id")) & (MAILS.c.lease == bindparam("old_lease"))
_SETTLE = (
    update(MAILS)
    .where(_IS_THIS_ATTEMPT)
    .values(
        status=bindparam("new_status"),
        lease=null(),
        attempts=bindparam("made"),
        last_error=bindparam("error"),
    )
)
_OUTCOME = ("mail_id", "old_lease", "new_status", "made", "error")
_RETRY = Prepared(_SETTLE.values(due_at=bindparam("due")), (*_OUTCOME, "due"))
_FINISH = Prepared(
    # `due_at` is set as well, so that `delete_finished` can use the index.
    _SETTLE.values(payload=null(), finished_at=bindparam("now"), due_at=bindparam("now")),
    (*_OUTCOME, "now"),
)
_RECORD = audit_queries.add_if(_IS_THIS_ATTEMPT, "mail_id", "old_lease", locks=OutboxMail)


def check_pending_work(
    database: Database, due: datetime, *, longest_lease: datetime, longest_pause: datetime
) -> PendingWork:
    """Return what there is to do.

    `longest_lease` and `longest_pause` are the latest times a lease and a back-off may end.
    """
    row = database.row(CHECK_PENDING_WORK, due, longest_lease, longest_pause)
    return PendingWork(*(found is not None for found in row or ()))


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
    database: Database, lease: str, *, due: datetime, until: datetime, exclude_recipient: str | None
) -> Leased | None:
    """Lease, until `until`, the mail that has been due longest at `due`; None if none is due.

    It is one statement, so only one of several concurrent senders gets a mail. Mails whose lease
    has expired come first. With `exclude_recipient`, mails to that address are excluded, and
    those that never failed come first.
    """
    values = {"due": due, "new_lease": lease, "until": until}
    if exclude_recipient is None:
        step = LEASE_NEXT.step(**values)
    else:
        step = LEASE_ANOTHER.step(**values, exclude_recipient=exclude_recipient)
    rows = database.change_then_read(step)
    return Leased(*rows[0]) if rows else None


def settle_finished(
    database: Database,
    attempt: Attempt,
    entry: Mapping[str, Any] | None,
    *,
    status: MailStatus,
    error: str | None,
    now: datetime,
) -> bool:
    """Record, with its audit entry, that a mail was sent or given up.

    `entry` is None if nothing is to be audited. Returns False if the attempt has lost its lease.
    """
    finish = _FINISH.step(new_status=status, error=error, now=now, **attempt._asdict())
    # The audit entry comes first: its condition needs the lease, which `finish` clears.
    mine = {"mail_id": attempt.mail_id, "old_lease": attempt.old_lease}
    recorded = audit_queries.entry_steps(_RECORD, entry, **mine)
    return database.change_together(*recorded, finish) == 1


def settle_retry(database: Database, attempt: Attempt, *, error: str | None, due: datetime) -> bool:
    """Record that a mail is to be retried; False if the attempt has lost its lease."""
    status = MailStatus.QUEUED
    step = _RETRY.step(new_status=status, error=error, due=due, **attempt._asdict())
    return database.change_together(step) == 1


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
