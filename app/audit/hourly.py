"""How often each action was recorded in each hour: what the overview is drawn from.

Counted once an hour is over and everything written in it is committed; younger entries are counted
when they are asked for. The counts outlive the entries.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, case, delete, func, select
from sqlalchemy.orm import Session

from app.audit import queries
from app.audit.models import Action, AuditEntry, AuditHour
from app.core.runtime import Runtime
from app.store.db import insert_into

HOUR = timedelta(hours=1)
# Longer than any transaction that an entry was written in.
SETTLED_AFTER = timedelta(minutes=5)
KEPT = timedelta(days=92)
# Stands for a first factor that a second one was asked for after: nobody is signed in by it.
UNFINISHED_SIGN_IN = "sign_in_unfinished"
_UNFINISHED = and_(
    AuditEntry.action.in_((Action.USER_LOGIN, Action.USER_EXTERNAL_AUTH_LOGIN)),
    AuditEntry.details.contains('"mfa_required": true', autoescape=True),
)
_KIND: ColumnElement[str] = case((_UNFINISHED, UNFINISHED_SIGN_IN), else_=AuditEntry.action)

# How often, by action; or UNFINISHED_SIGN_IN.
Counts = Mapping[str, int]


def count_finished_hours(rt: Runtime) -> int:
    """Count the hours that are over; return how many had entries. Concurrent runs do no harm."""
    settled = (rt.clock.now() - SETTLED_AFTER).replace(minute=0, second=0, microsecond=0)
    counted = 0
    with rt.reading() as session:
        since = counted_until(session, rt.clock.now())
    while True:
        with rt.reading() as session:
            first = queries.find_first_time(session, since, settled)
        if first is None:
            break
        hour = first.replace(minute=0, second=0, microsecond=0)
        with rt.transaction() as session:
            _count(session, hour)
        since, counted = hour + HOUR, counted + 1
        rt.clock.sleep(0)
    with rt.transaction() as session:
        session.execute(delete(AuditHour).where(AuditHour.hour < rt.clock.now() - KEPT))
    return counted


def counted_until(session: Session, now: datetime) -> datetime | None:
    """Return the end of the last hour before `now` that was counted; None if none was."""
    last = session.scalar(select(func.max(AuditHour.hour)).where(AuditHour.hour <= now))
    return last + HOUR if last else None


def counts_between(
    session: Session, since: datetime, until: datetime, boundary: datetime | None
) -> dict[str, int]:
    """Return how often which action was recorded; `until` is exclusive.

    An hour that was counted belongs where it began; `boundary` is what `counted_until` returns.
    """
    statement = select(AuditHour.action, func.sum(AuditHour.n)).group_by(AuditHour.action)
    rows = session.execute(statement.where(AuditHour.hour >= since, AuditHour.hour < until)).all()
    total = {action: int(n) for action, n in rows}
    live_since = max(since, boundary) if boundary else since
    if live_since < until:
        for action, n in _recorded(session, live_since, until):
            total[action] = total.get(action, 0) + n
    return total


def total_of(counts: Counts, actions: Iterable[str]) -> int:
    """Return how often any of these actions was recorded."""
    return sum(counts.get(action, 0) for action in actions)


def _recorded(session: Session, since: datetime, until: datetime) -> list[tuple[str, int]]:
    within = AuditEntry.created_at >= since, AuditEntry.created_at < until
    kinds = select(_KIND.label("kind")).where(*within).subquery()
    counting = select(kinds.c.kind, func.count()).group_by(kinds.c.kind)
    return [(kind, n) for kind, n in session.execute(counting).all()]


def _count(session: Session, hour: datetime) -> None:
    # The first count stands: a cleanup may have deleted entries of the hour since. Sorted, because
    # two that insert the same rows in different orders can deadlock.
    counted = sorted(_recorded(session, hour, hour + HOUR))
    if counted:
        rows = [{"hour": hour, "action": kind, "n": n} for kind, n in counted]
        session.execute(insert_into(session, AuditHour).values(rows).on_conflict_do_nothing())
