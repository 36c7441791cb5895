"""Statements on sessions."""

from collections.abc import Collection
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    String,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.core.client import Client
from app.core.database import bulk
from app.core.database.database import Database, Reader
from app.core.database.lookups import Lookup
from app.core.database.many_keys import among
from app.core.database.prepared import Prepared, constant
from app.core.db import UTCDateTime, columns_of
from app.sessions.models import LoginSession
from app.sessions.refresh_token import RefreshToken
from app.users.models import ACCOUNT_COLUMNS, Account, Status, User, with_profile

_SESSION_COLUMNS = (LoginSession.revoked_at, LoginSession.expires_at, LoginSession.is_limited)
_ACCESS = Lookup(
    with_profile(
        select(*_SESSION_COLUMNS, *ACCOUNT_COLUMNS).join(User, User.id == LoginSession.user_id)
    ),
    LoginSession.id,
)
_BY_TOKEN = Lookup(
    select(
        LoginSession.id,
        LoginSession.user_id,
        LoginSession.refresh_digest,
        LoginSession.previous_digest,
        LoginSession.is_limited,
        LoginSession.user_agent,
        LoginSession.last_seen_at,
        LoginSession.expires_at,
        LoginSession.revoked_at,
        User.status,
        User.must_change_password,
    ).join(User, User.id == LoginSession.user_id),
    LoginSession.refresh_selector,
)
_INSERT = insert(LoginSession)
# Clients that sign in per request have thousands; listing all would stall a worker for seconds.
MAX_LISTED = 500
# The conditions `authenticate` in service.py checks for one session, in SQL.
_SESSION_GOES_ON = (
    LoginSession.revoked_at.is_(None),
    LoginSession.expires_at > bindparam("now"),
    LoginSession.is_limited.is_(False),
)
_ACCOUNT_GOES_ON = (
    User.status == constant(Status.ACTIVE),
    User.must_change_password.is_(False) | bindparam("enforces_change", type_=Boolean()).is_(False),
)
_ROTATE = Prepared(
    update(LoginSession)
    .where(
        LoginSession.refresh_selector == bindparam("selector"),
        LoginSession.refresh_digest == bindparam("old_digest"),
        *_SESSION_GOES_ON,
        exists(select(User.id).where(User.id == LoginSession.user_id, *_ACCOUNT_GOES_ON)),
    )
    .values(
        refresh_digest=bindparam("new_digest", type_=String(64)),
        previous_digest=bindparam("old_digest"),
        last_seen_at=bindparam("now"),
        expires_at=bindparam("new_expires_at", type_=UTCDateTime()),
        ip_address=func.coalesce(bindparam("address", type_=String(45)), LoginSession.ip_address),
        user_agent=func.coalesce(
            bindparam("user_agent", type_=String(512)), LoginSession.user_agent
        ),
    )
    .returning(LoginSession.id, LoginSession.user_id),
    (
        "selector",
        "old_digest",
        "now",
        "enforces_change",
        "new_digest",
        "new_expires_at",
        "address",
        "user_agent",
    ),
)
_OPEN_AMONG = Prepared(
    select(LoginSession.id)
    .join(User, User.id == LoginSession.user_id)
    .where(among(LoginSession.id, "session_ids"), *_SESSION_GOES_ON, *_ACCOUNT_GOES_ON),
    ("session_ids", "now", "enforces_change"),
)


class Listed(NamedTuple):
    """One entry of the session list."""

    id: str
    refresh_digest: str
    ip_address: str | None
    user_agent: str | None
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


_LIST = Lookup(
    select(*columns_of(Listed, LoginSession)).where(LoginSession.revoked_at.is_(None)),
    LoginSession.user_id,
    most=MAX_LISTED + 1,
)
_NEWEST = Prepared(
    select(*columns_of(Listed, LoginSession))
    .where(
        LoginSession.user_id == bindparam("user_id"),
        LoginSession.revoked_at.is_(None),
        LoginSession.expires_at > bindparam("now"),
    )
    .order_by(
        (LoginSession.refresh_digest == bindparam("current")).desc(),
        LoginSession.last_seen_at.desc(),
        LoginSession.id,
    )
    .limit(constant(MAX_LISTED))
    .offset(constant(0)),
    ("user_id", "now", "current"),
)


class Access(NamedTuple):
    """What the access check reads, in a single query."""

    revoked_at: datetime | None
    expires_at: datetime
    is_limited: bool
    account: Account


class TokenSession(NamedTuple):
    """The session a refresh token belongs to, and the state of its account."""

    session_id: str
    user_id: int
    refresh_digest: str
    previous_digest: str | None
    is_limited: bool
    user_agent: str | None
    last_seen_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    status: str
    must_change_password: bool


def add(session: Session, **columns: Any) -> None:
    """Insert a session."""
    session.connection().execute(_INSERT, columns)


def find_access(database: Database, session_id: str) -> Access | None:
    """Return session and account in one indexed read (decision A7); None if there is no session."""
    row = database.lookup(_ACCESS, session_id)
    return Access(row[0], row[1], row[2], Account(*row[3:])) if row else None


def find_by_token(database: Database, token: RefreshToken) -> TokenSession | None:
    """Return the session this token belongs or belonged to; None if there is none."""
    row = database.lookup(_BY_TOKEN, token.selector_digest)
    return TokenSession(*row) if row else None


def find_by_live_token(database: Database, token: RefreshToken) -> TokenSession | None:
    """Return the session whose live token this is, even if it has ended; None for a spent token."""
    found = find_by_token(database, token)
    return found if found and token.is_stored_as(found.refresh_digest) else None


def rotate(
    database: Database,
    old: RefreshToken,
    successor: RefreshToken,
    client: Client,
    now: datetime,
    *,
    enforces_change: bool,
) -> tuple[str, int] | None:
    """Replace a live refresh token with its successor; return the ids of its session and user.

    None if the token is not live, its session may not continue, or, with `enforces_change`, the
    account must change its password. A single UPDATE, so of two concurrent refreshes exactly one
    wins (spec, Endpoint rules 6).
    """
    step = _ROTATE.step(
        selector=old.selector_digest,
        old_digest=old.digest,
        now=now,
        enforces_change=enforces_change,
        new_digest=successor.digest,
        new_expires_at=successor.expires_at,
        address=client.address,
        user_agent=client.user_agent,
    )
    rows = database.change_then_read(step)
    return (rows[0][0], rows[0][1]) if rows else None


def list_live(database: Database, user_id: int, now: datetime, current: str) -> list[Listed]:
    """Return the user's live sessions, most recently seen first.

    At most the MAX_LISTED first, and always the one whose live token has the digest `current`.
    """
    found = database.lookup_all(_LIST, user_id)
    if len(found) > MAX_LISTED:
        found = database.rows(_NEWEST, user_id, now, current)
    live = (listed for listed in map(Listed._make, found) if listed.expires_at > now)
    return sorted(sorted(live, key=attrgetter("id")), key=attrgetter("last_seen_at"), reverse=True)


def find_owner(reader: Reader, session_id: str) -> int | None:
    """Return the user id of a session; None if there is no such session."""
    statement = select(LoginSession.user_id).where(LoginSession.id == session_id)
    return reader.execute(statement).scalar()


def list_open_among(
    database: Database, session_ids: Collection[str], now: datetime, *, enforces_change: bool
) -> set[str]:
    """Return which of these sessions may use the service.

    `enforces_change`: those of accounts that must change their password may not.
    """
    return {row[0] for row in database.rows(_OPEN_AMONG, list(session_ids), now, enforces_change)}


def is_live(session: Session, session_id: str, now: datetime) -> bool:
    """Return whether a session has neither ended nor expired."""
    statement = select(LoginSession.id).where(
        LoginSession.id == session_id,
        LoginSession.revoked_at.is_(None),
        LoginSession.expires_at > now,
    )
    return session.execute(statement).one_or_none() is not None


def revoke(session: Session, session_id: str, now: datetime) -> bool:
    """End one session; False if it had already ended."""
    return _revoke(session, now, LoginSession.id == session_id) == 1


def revoke_others(session: Session, user_id: int, keep_id: str, now: datetime) -> int:
    """End all live sessions but one; return how many."""
    return _revoke(
        session,
        now,
        LoginSession.user_id == user_id,
        LoginSession.id != keep_id,
        LoginSession.expires_at > now,
    )


def revoke_all(session: Session, user_id: int, now: datetime) -> int:
    """End every session of a user and void flows and logins in progress; return how many ended.

    A pending change of address is dropped, since its link works without a session.
    The account's row is updated first: a login about to complete waits for the row lock, sees the
    new session_version and is refused.
    """
    session.execute(
        update(User)
        .where(User.id == user_id)
        .values(session_version=User.session_version + 1, pending_email=None)
        .execution_options(synchronize_session=False)
    )
    return _revoke(session, now, LoginSession.user_id == user_id)


def delete_expired(session: Session, now: datetime, most: int) -> int:
    """Delete up to `most` sessions whose tokens have all expired; return how many."""
    expired = select(LoginSession.id).where(LoginSession.expires_at < now).limit(most)
    return bulk.change(session, delete(LoginSession).where(LoginSession.id.in_(expired)))


def _revoke(session: Session, now: datetime, *conditions: Any) -> int:
    return bulk.change(
        session,
        update(LoginSession)
        .where(LoginSession.revoked_at.is_(None), *conditions)
        .values(revoked_at=now),
    )
