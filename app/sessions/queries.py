"""Statements on sessions."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    Boolean,
    ColumnElement,
    RowMapping,
    String,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    not_,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.core.client import Client
from app.sessions.models import LoginSession
from app.sessions.refresh_token import RefreshToken
from app.store import bulk
from app.store.database import Database
from app.store.db import UTCDateTime
from app.users.models import ACCOUNT_COLUMNS, Account, Status, User, with_profile

# Clients that sign in per request have thousands; listing all would stall a worker for seconds.
MAX_LISTED = 500


class Access(NamedTuple):
    """What the access check reads, in a single query."""

    revoked_at: datetime | None
    expires_at: datetime
    is_limited: bool
    confirmed_at: datetime
    account: Account


_now = bindparam("now", type_=UTCDateTime())
_enforces_change = bindparam("enforces_change", type_=Boolean)

_IS_LIVE = (LoginSession.revoked_at.is_(None), LoginSession.expires_at > _now)

# What `service.authenticate` checks of a session and of its account.
_GOES_ON = (*_IS_LIVE, LoginSession.is_limited.is_(False))
_ACCOUNT_GOES_ON = (
    User.status == Status.ACTIVE,
    not_(and_(_enforces_change, User.must_change_password)),
)

# Statements that many requests run are built once.
_ACCESS = with_profile(
    select(
        LoginSession.revoked_at,
        LoginSession.expires_at,
        LoginSession.is_limited,
        LoginSession.confirmed_at,
        *ACCOUNT_COLUMNS,
    )
    .join(User, User.id == LoginSession.user_id)
    .where(LoginSession.id == bindparam("session_id"))
)


_ROTATE = (
    update(LoginSession)
    .where(
        LoginSession.refresh_selector == bindparam("selector"),
        LoginSession.refresh_digest == bindparam("old_digest"),
        *_GOES_ON,
        exists(select(User.id).where(User.id == LoginSession.user_id, *_ACCOUNT_GOES_ON)),
    )
    .values(
        refresh_digest=bindparam("new_digest"),
        previous_digest=bindparam("old_digest"),
        last_seen_at=_now,
        expires_at=case(
            (LoginSession.is_short, bindparam("short_expiry", type_=UTCDateTime())),
            else_=bindparam("new_expiry", type_=UTCDateTime()),
        ),
        ip_address=func.coalesce(bindparam("address", type_=String), LoginSession.ip_address),
        user_agent=func.coalesce(bindparam("agent", type_=String), LoginSession.user_agent),
    )
    .returning(LoginSession.id, LoginSession.user_id, LoginSession.is_short)
    .execution_options(synchronize_session=False)
)

_is_current = (LoginSession.refresh_digest == bindparam("current")).label("is_current")

_LIST_LIVE = (
    select(
        LoginSession.id,
        LoginSession.ip_address,
        LoginSession.user_agent,
        LoginSession.created_at,
        LoginSession.last_seen_at,
        LoginSession.expires_at,
        _is_current,
    )
    .where(LoginSession.user_id == bindparam("user_id"), *_IS_LIVE)
    .order_by(_is_current.desc(), LoginSession.last_seen_at.desc(), LoginSession.id)
    .limit(MAX_LISTED)
)


def find_access(database: Database, session_id: str) -> Access | None:
    """Return session and account in one indexed read; None if there is no session."""
    with database.connect() as connection:
        row = connection.execute(_ACCESS, {"session_id": session_id}).one_or_none()
    return Access(row[0], row[1], row[2], row[3], Account(*row[4:])) if row else None


def confirm(session: Session, session_id: str, user_id: int, now: datetime) -> bool:
    """Note when a live session of this user was confirmed; False if there is none."""
    statement = update(LoginSession).where(
        LoginSession.id == session_id,
        LoginSession.user_id == user_id,
        LoginSession.revoked_at.is_(None),
        LoginSession.expires_at > now,
    )
    return bulk.change(session, statement.values(confirmed_at=now)) == 1


def find_by_token(session: Session, token: RefreshToken) -> LoginSession | None:
    """Return the session this token belongs or belonged to; None if there is none."""
    return session.scalar(
        select(LoginSession).where(LoginSession.refresh_selector == token.selector_digest)
    )


def find_open(session: Session, token: RefreshToken, now: datetime) -> LoginSession | None:
    """Return the session that has not ended and whose live token this is; None if there is none."""
    found = find_by_token(session, token)
    if found is None or found.revoked_at is not None or found.expires_at <= now:
        return None
    return found if token.is_stored_as(found.refresh_digest) else None


def rotate(
    session: Session,
    old: RefreshToken,
    successor: RefreshToken,
    client: Client,
    now: datetime,
    *,
    short_expiry: datetime,
    enforces_change: bool,
) -> tuple[str, int, bool] | None:
    """Replace a live refresh token with its successor; return the ids of its session and user.

    With them, whether it is a short session, which then expires at `short_expiry` at the latest.
    None if the token is not live, its session may not continue, or, with `enforces_change`, the
    account must change its password. A single UPDATE, so of two concurrent refreshes exactly one
    wins.
    """
    values = {
        "selector": old.selector_digest,
        "old_digest": old.digest,
        "new_digest": successor.digest,
        "new_expiry": successor.expires_at,
        "short_expiry": short_expiry,
        "address": client.address,
        "agent": client.user_agent,
        "now": now,
        "enforces_change": enforces_change,
    }
    row = session.execute(_ROTATE, values).one_or_none()
    return (row[0], row[1], row[2]) if row else None


def list_live(database: Database, user_id: int, now: datetime, current: str) -> list[RowMapping]:
    """Return the user's live sessions, most recently seen first.

    At most the MAX_LISTED first, and always the one whose live token has the digest `current`.
    """
    values = {"user_id": user_id, "now": now, "current": current}
    with database.connect() as connection:
        found = connection.execute(_LIST_LIVE, values).mappings().all()
    return sorted(found, key=lambda row: (-row["last_seen_at"].timestamp(), row["id"]))


def count_live(session: Session, user_id: int, now: datetime) -> tuple[int, datetime | None]:
    """Return how many live sessions a user has, and when the newest one stored was opened."""
    is_live = and_(*_IS_LIVE)
    statement = select(func.count().filter(is_live), func.max(LoginSession.created_at))
    row = session.execute(statement.where(LoginSession.user_id == user_id), {"now": now}).one()
    return row[0], row[1]


def find_owner(session: Session, session_id: str) -> int | None:
    """Return the user id of a session; None if there is no such session."""
    return session.scalar(select(LoginSession.user_id).where(LoginSession.id == session_id))


def is_short(session: Session, session_id: str) -> bool:
    """Return whether a session ends with its browser's window."""
    statement = select(LoginSession.is_short).where(LoginSession.id == session_id)
    return bool(session.scalar(statement))


def list_open_among(
    session: Session, session_ids: Collection[str], now: datetime, *, enforces_change: bool
) -> set[str]:
    """Return which of these sessions may use the service.

    `enforces_change`: those of accounts that must change their password may not.
    """
    statement = (
        select(LoginSession.id)
        .join(User, User.id == LoginSession.user_id)
        .where(LoginSession.id.in_(session_ids), *_GOES_ON, *_ACCOUNT_GOES_ON)
    )
    values = {"now": now, "enforces_change": enforces_change}
    return set(session.scalars(statement, values))


def is_live(session: Session, session_id: str, now: datetime) -> bool:
    """Return whether a session has neither ended nor expired."""
    statement = select(LoginSession.id).where(LoginSession.id == session_id, *_IS_LIVE)
    return session.scalar(statement, {"now": now}) is not None


def revoke(session: Session, session_id: str, now: datetime) -> bool:
    """End one session; False if it had already ended."""
    return _revoke(session, now, LoginSession.id == session_id) == 1


def revoke_others(session: Session, user_id: int, keep_id: str, now: datetime) -> int:
    """End all live sessions but one; return how many."""
    others = LoginSession.user_id == user_id, LoginSession.id != keep_id
    return _revoke(session, now, *others, LoginSession.expires_at > now)


def revoke_all(session: Session, user_id: int, now: datetime) -> int:
    """End every session of a user and void flows and logins in progress; return how many ended.

    A pending change of address is dropped, since its link works without a session.
    The account's row is updated first: a login about to complete waits for the row lock, sees the
    new session_version and is refused.
    """
    values = {"session_version": User.session_version + 1, "pending_email": None}
    bulk.change(session, update(User).where(User.id == user_id).values(values))
    return _revoke(session, now, LoginSession.user_id == user_id)


def find_expired(
    session: Session, now: datetime, most: int, *, opened_before: datetime
) -> Sequence[str]:
    """Return the ids of up to `most` sessions whose tokens have all expired.

    Without an index: every refresh would have to change it, and with it all others of the table.
    """
    expired = _has_expired(now, opened_before)
    return session.scalars(select(LoginSession.id).where(*expired).limit(most)).all()


def delete_expired(
    session: Session, now: datetime, session_ids: Sequence[str], *, opened_before: datetime
) -> int:
    """Delete those of these sessions whose tokens have all expired; return how many."""
    these, expired = LoginSession.id.in_(session_ids), _has_expired(now, opened_before)
    return bulk.change(session, delete(LoginSession).where(these, *expired))


def _has_expired(
    now: datetime, opened_before: datetime
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return LoginSession.expires_at < now, LoginSession.created_at < opened_before


def _revoke(session: Session, now: datetime, *conditions: ColumnElement[bool]) -> int:
    its_rows = update(LoginSession).where(LoginSession.revoked_at.is_(None), *conditions)
    return bulk.change(session, its_rows.values(revoked_at=now))
