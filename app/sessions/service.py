"""Use cases of sessions: the access check, opening, listing."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import uuid4

from sqlalchemy import RowMapping
from sqlalchemy.orm import Session

from app.access_tokens import queries as access_tokens_queries
from app.access_tokens import service as access_tokens
from app.browsers import queries as browsers
from app.core.access import (
    AccountDisabled,
    AdminRequired,
    Principal,
    Program,
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
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Role, Status


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
    if access.is_limited != users.is_password_change_forced(rt, access.account):
        raise TokenInvalid
    return Principal(access.account, session_id, expires_at, access.is_limited, access.confirmed_at)


def open_session(
    rt: Runtime,
    session: Session,
    user_id: int,
    client: Client,
    *,
    is_limited: bool,
    is_short: bool = False,
    confirmed_at: datetime | None = None,
    session_id: str | None = None,
) -> TokenPair:
    """Start a session in the caller's transaction; return its first token pair.

    `confirmed_at` is when it counts as confirmed, by default now; `session_id` by default random.
    """
    now, session_id = rt.clock.now(), session_id or str(uuid4())
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
        confirmed_at=confirmed_at or now,
        expires_at=token.expires_at,
        is_short=is_short,
    )
    session.add(opened)
    session.flush()
    after_commit(session, lambda: note_caller(user_id, session_id=session_id))
    return pair(rt, session_id, user_id, token, now, is_short=is_short)


def has_been_opened(session: Session, session_id: str) -> bool:
    """Return whether there is a session of this id, live or ended."""
    return session.get(LoginSession, session_id) is not None


def list_sessions(rt: Runtime, user_id: int, presented: str | None) -> list[RowMapping]:
    """Return the live sessions, each with whether the presented refresh token is its live one.

    At most `queries.MAX_LISTED`: the most recently seen, and the current one.
    """
    current = digest(presented) if presented else ""
    return queries.list_live(rt.database, user_id, rt.clock.now(), current)


def lock_account(
    rt: Runtime, session: Session, principal: Principal | Program, session_id: str | None = None
) -> Account:
    """Lock the caller's account until the commit and return it as it is now.

    `session_id` names the session that must still be live, if not the principal's own.
    Raises: AccountDisabled, TokenInvalid, if either has become true since the access check; what
    `access_tokens.require_still_open` raises of a program.
    """
    if isinstance(principal, Program):
        users_queries.lock(session, principal.user_id)
        return access_tokens.require_still_open(rt, session, principal)
    account = users_queries.lock_and_find(session, principal.user_id)
    if account is not None and account.status != Status.ACTIVE:
        raise AccountDisabled
    if account is None or not is_live(rt, session, session_id or principal.session_id):
        raise TokenInvalid
    return account


def require_still_admin(rt: Runtime, session: Session, principal: Principal | Program) -> None:
    """Refuse an administrator who was demoted or disabled while the request waited.

    Raises: TokenInvalid, AccountDisabled, AdminRequired; what `access_tokens.require_still_open`
    raises of a program.
    """
    if isinstance(principal, Program):
        account = access_tokens.require_still_open(rt, session, principal)
    else:
        account = users.require_still_active(session, principal)
    if account.role != Role.ADMIN:
        raise AdminRequired


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


def revoke_all(rt: Runtime, session: Session, user_id: int, *, keeps_tokens: bool = False) -> int:
    """End every session of a user in the caller's transaction; return how many ended.

    With them go the access tokens, unless `keeps_tokens`: for what says nothing about who has them.
    No browser is remembered any more, nor one that a sign-in remembers at this moment: the
    account's row is locked first.
    """
    users.publish_ended_access(rt, session, user_id)
    removed = queries.revoke_all(session, user_id, rt.clock.now())
    browsers.void(session, user_id)
    if not keeps_tokens:
        access_tokens_queries.remove_all(session, user_id)
    return removed


def filter_open(rt: Runtime, ids: Collection[str | int]) -> set[str | int]:
    """Return which sessions and tokens may go on: the checks of each request for many at once.

    The ids of sessions are texts, those of access tokens numbers. Excludes sessions that may only
    change the password. Raises: DatabaseUnavailable.
    """
    session_ids = {one for one in ids if isinstance(one, str)}
    token_ids = {one for one in ids if isinstance(one, int)}
    enforces, found = users.enforces_password_change(rt), set[str | int]()
    with rt.reading() as session:
        if session_ids:
            found |= queries.list_open_among(
                session, session_ids, rt.clock.now(), enforces_change=enforces
            )
        if token_ids:
            found |= access_tokens.filter_open(rt, session, token_ids)
    return found


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
