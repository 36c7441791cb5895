"""Use cases of sessions: the access check, opening, listing."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import RowMapping
from sqlalchemy.orm import Session

from app.browsers import queries as browsers
from app.core.access import (
    AccountDisabled,
    Principal,
    TokenInvalid,
    TokenPair,
)
from app.core.client import Client
from app.core.logs import note_caller
from app.core.runtime import Runtime
from app.crypto.tokens import digest
from app.sessions import access_token, queries, refresh_token
from app.sessions.models import LoginSession
from app.sessions.refresh_token import RefreshToken
from app.settings import keys
from app.store.db import after_commit
from app.store.redis import SESSIONS_CHANNEL
from app.users import queries as users_queries
from app.users.models import Account, Status, User

# When a session was confirmed whose owner has not been asked for all that a sign-in takes.
NEVER = datetime.fromtimestamp(0, UTC)


def authenticate(rt: Runtime, token: str) -> Principal:
    """Return the principal of an access token, checked against the current state of the database.

    Raises: TokenInvalid, TokenExpired, AccountDisabled.
    """
    now = rt.clock.now()
    session_id, expires_at = access_token.read(rt.keyring, token, now)
    access = queries.find_access(rt.database, session_id)
    if access is None:
        raise TokenInvalid
    if access.account.status != Status.ACTIVE:
        raise AccountDisabled
    if access.revoked_at is not None or access.expires_at <= now:
        raise TokenInvalid
    if access.is_limited != is_password_change_forced(rt, access.account):
        raise TokenInvalid
    return Principal(access.account, session_id, expires_at, access.is_limited, access.confirmed_at)


def is_password_change_forced(rt: Runtime, account: Account | User) -> bool:
    """Return whether a password change is forced, which requires that password login is enabled."""
    return account.must_change_password and enforces_change(rt)


def enforces_change(rt: Runtime) -> bool:
    """Return whether accounts that must change their password may do nothing else."""
    return rt.settings.get(keys.PASSWORD_LOGIN_ENABLED)


def open_session(
    rt: Runtime,
    session: Session,
    user_id: int,
    client: Client,
    *,
    is_limited: bool,
    is_short: bool = False,
    is_confirmed: bool = True,
) -> TokenPair:
    """Start a session in the caller's transaction; return its first token pair."""
    now, session_id = rt.clock.now(), str(uuid4())
    token = refresh_token.new(rt.keyring, refresh_expiry(rt, now, is_short=is_short))
    opened = LoginSession(
        id=session_id,
        user_id=user_id,
        refresh_selector=token.selector_digest,
        refresh_digest=token.digest,
        is_limited=is_limited,
        ip_address=client.address,
        user_agent=client.user_agent,
        created_at=now,
        last_seen_at=now,
        confirmed_at=now if is_confirmed else NEVER,
        expires_at=token.expires_at,
        is_short=is_short,
    )
    session.add(opened)
    session.flush()
    after_commit(session, lambda: note_caller(user_id, session_id))
    return pair(rt, session_id, user_id, token, now, is_short=is_short)


def list_sessions(rt: Runtime, user_id: int, presented: str | None) -> list[RowMapping]:
    """Return the live sessions, each with whether the presented refresh token is its live one.

    At most `queries.MAX_LISTED`: the most recently seen, and the current one.
    """
    current = digest(presented) if presented else ""
    return queries.list_live(rt.database, user_id, rt.clock.now(), current)


def lock_account(
    rt: Runtime, session: Session, principal: Principal, session_id: str | None = None
) -> Account:
    """Lock the caller's account until the commit and return it as it is now.

    `session_id` names the session that must still be live, if not the principal's own.
    Raises: AccountDisabled, TokenInvalid, if either has become true since the access check.
    """
    account = users_queries.lock_and_find(session, principal.user_id)
    if account is not None and account.status != Status.ACTIVE:
        raise AccountDisabled
    if account is None or not is_live(rt, session, session_id or principal.session_id):
        raise TokenInvalid
    return account


def confirm(rt: Runtime, session: Session, principal: Principal) -> None:
    """Note that the owner of a session has just confirmed to be the owner.

    Raises: TokenInvalid, if the session has ended.
    """
    if not queries.confirm(session, principal.session_id, principal.user_id, rt.clock.now()):
        raise TokenInvalid


def is_short(session: Session, session_id: str) -> bool:
    """Return whether a session ends with its browser's window."""
    return queries.is_short(session, session_id)


def is_live(rt: Runtime, session: Session, session_id: str) -> bool:
    """Return whether a session has neither ended nor expired, in the caller's transaction."""
    return queries.is_live(session, session_id, rt.clock.now())


def publish_after_commit(rt: Runtime, session: Session, user_id: int) -> None:
    """Tell every process, after the commit, that sessions of a user have ended.

    For what outlives a request, such as an event stream. The message only names the user whose
    sessions to recheck: the database alone decides what has ended, so a lost or forged message does
    no harm.
    """
    after_commit(
        session,
        lambda: rt.redis.fail_fast.attempt(lambda r: r.publish(SESSIONS_CHANNEL, str(user_id))),
    )


def revoke_all(rt: Runtime, session: Session, user_id: int) -> int:
    """End every session of a user in the caller's transaction; return how many ended.

    No browser is remembered any more, nor one that a sign-in remembers at this moment: the
    account's row is locked first.
    """
    publish_after_commit(rt, session, user_id)
    removed = queries.revoke_all(session, user_id, rt.clock.now())
    browsers.void(session, user_id)
    return removed


def filter_open(rt: Runtime, session_ids: Collection[str]) -> set[str]:
    """Return which of these sessions may continue: the checks of `authenticate` for many at once.

    Excludes sessions that may only change the password. Raises: DatabaseUnavailable.
    """
    enforces = enforces_change(rt)
    with rt.reading() as session:
        return queries.list_open_among(
            session, session_ids, rt.clock.now(), enforces_change=enforces
        )


def pair(
    rt: Runtime,
    session_id: str,
    user_id: int,
    token: RefreshToken,
    now: datetime,
    *,
    is_short: bool = False,
) -> TokenPair:
    """Return a refresh token with a new access token of its session."""
    access_seconds = rt.settings.get(keys.ACCESS_TTL_SECONDS)
    life = timedelta(seconds=access_seconds)
    return TokenPair(
        access_token=access_token.issue(rt.keyring, session_id, user_id, now, life),
        access_seconds=access_seconds,
        refresh_token=token.text,
        refresh_seconds=rt.settings.get(keys.REFRESH_TTL_SECONDS),
        is_short=is_short,
    )


def refresh_expiry(rt: Runtime, now: datetime, *, is_short: bool = False) -> datetime:
    """Return when a refresh token issued now expires."""
    life = rt.settings.get(keys.REFRESH_TTL_SECONDS)
    if is_short:
        life = min(life, rt.settings.get(keys.SHORT_SESSION_SECONDS))
    return now + timedelta(seconds=life)
