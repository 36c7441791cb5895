"""What administrators see first: numbers, health, each day in numbers, and what happened last."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from app.audit import hourly
from app.audit import keys as audit_keys
from app.audit.models import Action
from app.audit.queries import EntryFilter
from app.audit_log import service as audit_log
from app.core import product
from app.core.runtime import Runtime
from app.core.texts import is_time_zone
from app.installation import health
from app.installation.errors import ZoneUnknown
from app.invitations.models import Invitation, InvitationStatus
from app.mail import queries as mail_queries
from app.mail.models import MailStatus, OutboxMail
from app.mfa.models import MfaFactor
from app.passkeys.models import Passkey
from app.sessions.models import LoginSession
from app.store.paging import count
from app.users.models import Role, Status, User

DAY = timedelta(days=1)
# What a day's report counts; a sign-in counts once it is complete.
REPORTED: dict[str, tuple[str, ...]] = {
    "sign_ins": (
        Action.USER_LOGIN,
        Action.USER_EMAIL_CODE_SIGN_IN,
        Action.USER_EXTERNAL_AUTH_LOGIN,
        Action.USER_PASSKEY_LOGIN,
        Action.USER_MFA_CHALLENGE_SUCCESS,
    ),
    "failed_sign_ins": (Action.USER_LOGIN_FAILED, Action.USER_MFA_CHALLENGE_FAILED),
    "new_users": (Action.SYSTEM_SETUP, Action.USER_REGISTER, Action.ADMIN_CREATE_USER),
    "deletions": (Action.ADMIN_FORCE_DELETE_USER, Action.USER_DELETE_ACCOUNT),
    "password_resets": (Action.USER_CONFIRM_PASSWORD_RESET,),
}


@dataclass(frozen=True)
class Day:
    """A day of a time zone, from its midnight to the next."""

    date: date
    begins: datetime
    ends: datetime


def overview(rt: Runtime, days: int, timezone: str, event_limit: int) -> dict[str, Any]:
    """Return the overview of the last `days`, as days are in `timezone`.

    Raises: ZoneUnknown.
    """
    if not is_time_zone(timezone):
        raise ZoneUnknown
    now = rt.clock.now()
    shown = [*_days(now, days, ZoneInfo(timezone))]
    with rt.reading() as session:
        boundary = hourly.counted_until(session, now)
        reports = [_report(session, day, boundary) for day in shown]
        stats, estimated = _stats(session, now, shown[0].begins)
    return {
        "generated_at": now,
        "timezone": timezone,
        "days": days,
        "stats": {**stats, "audit_events_today": reports[0]["total_events"], **product.FILE_STATS},
        "estimated_stats": estimated,
        "system_health": health.last_found(rt),
        "daily_reports": reports,
        "recent_events": audit_log.list_newest(rt, EntryFilter(), event_limit),
        "recent_background_tasks": product.NO_BACKGROUND_TASKS,
        "is_audit_log_enabled": rt.settings.get(audit_keys.ENABLED),
    }


def _days(now: datetime, number: int, zone: ZoneInfo) -> Iterator[Day]:
    """Yield the last days, today first."""
    today = now.astimezone(zone).date()
    for ago in range(number):
        day = today - ago * DAY
        yield Day(day, _midnight(day, zone), _midnight(day + DAY, zone))


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def _report(session: Session, day: Day, boundary: datetime | None) -> dict[str, Any]:
    counts = hourly.counts_between(session, day.begins, day.ends, boundary)
    reported = {name: hourly.total_of(counts, actions) for name, actions in REPORTED.items()}
    total = hourly.total_of(counts, counts)
    return {"date": day.date, **reported, **product.OF_FILES, "total_events": total}


def _stats(session: Session, now: datetime, midnight: datetime) -> tuple[dict[str, int], list[str]]:
    """Return the numbers, and which are estimates; each is answered by an index."""
    live = LoginSession.revoked_at.is_(None), LoginSession.expires_at > now
    is_open = Invitation.status == InvitationStatus.PENDING, Invitation.expires_at > now
    # A finished mail is due at the time it was finished.
    failed = and_(OutboxMail.status == MailStatus.FAILED, OutboxMail.due_at >= now - DAY)
    counted = {
        "total_users": select(User.id),
        "disabled_users": select(User.id).where(User.status == Status.DISABLED),
        "pending_users": select(User.id).where(
            User.activated_at.is_(None), User.status == Status.ACTIVE
        ),
        "administrators": select(User.id).where(User.role == Role.ADMIN),
        "new_users_today": select(User.id).where(User.created_at >= midnight),
        "live_sessions": select(LoginSession.id).where(*live),
        "users_with_second_factor": select(MfaFactor.user_id).distinct(),
        "users_with_passkey": select(Passkey.user_id).distinct(),
        "pending_invitations": select(Invitation.id).where(*is_open),
        "mails_waiting": select(OutboxMail.id).where(
            OutboxMail.status.in_(mail_queries.UNFINISHED)
        ),
        "mails_failed_24h": select(OutboxMail.id).where(failed),
    }
    found = {name: count(session, matching) for name, matching in counted.items()}
    total, is_total_exact = found["total_users"]
    disabled, is_disabled_exact = found["disabled_users"]
    found["active_users"] = max(0, total - disabled), is_total_exact and is_disabled_exact
    stats = {name: number for name, (number, _) in found.items()}
    return stats, [name for name, (_, is_exact) in found.items() if not is_exact]
