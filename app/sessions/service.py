"""Use cases of sessions: the access check, opening, rotating, listing."""

import hmac
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, NoReturn

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Event
from app.core.access import (
    AccountDisabled,
    PasswordChangeRequired,
    Principal,
    TokenExpired,
    TokenInvalid,
    TokenPair,
)
from app.core.client import Client
from app.core.logs import note_caller
from app.core.runtime import Runtime
from app.core.tokens import digest, random_uuid
from app.sessions import (
    access_token,
    opening,
    queries,
    refresh_token,
    replay,
    revocation_events,
    rotations,
)
from app.sessions.errors import RefreshTokenStale
from app.sessions.opening import OneTimeUse
from app.sessions.refresh_token import RefreshToken
from app.settings import keys
from app.users import queries as users_queries
from app.users.models import Account, Status


def authenticate(rt: Runtime, token: str) -> Principal:
    """Return the principal of an access token, checked against the current state of the database.

    Raises: TokenInvalid, TokenExpired, AccountDisabled.
    Source: decisions A3 and A7; spec 01 §1.1.
    """
    now = rt.clock.now()
    claims = access_token.read(rt.access_tokens, token, now)
    access = queries.find_access(rt.database, claims.session_id)
    if access is None:
        raise TokenInvalid
    if access.account.status != Status.ACTIVE:
        raise AccountDisabled
    if access.revoked_at is not None or access.expires_at <= now:
        raise TokenInvalid
    if access.is_limited != is_password_change_forced(rt, access.account):
        raise TokenInvalid
    return Principal(access.account, claims.session_id, claims.expires_at, access.is_limited)


def is_password_change_forced(rt: Runtime, account: Account | queries.TokenSession) -> bool:
    """Return whether a password change is forced, which requires that password login is enabled."""
    return account.must_change_password and _enforces_change(rt)


def _enforces_change(rt: Runtime) -> bool:
    return rt.settings.get(keys.PASSWORD_LOGIN_ENABLED)


def open_session(
    rt: Runtime, session: Session, user_id: int, client: Client, *, is_limited: bool
) -> TokenPair:
    """Start a session in the caller's transaction; return its first token pair."""
    columns, pair = _new_session(rt, user_id, client, is_limited=is_limited)
    queries.add(session, **columns)
    note_caller(user_id, columns["id"])
    return pair


def open_if_unchanged(
    rt: Runtime,
    account: Account,
    client: Client,
    *,
    is_limited: bool,
    event: Event,
    use: OneTimeUse | None = None,
) -> TokenPair | None:
    """Start a session if the account is still as it was read, and record `event` with it.

    None if the account was disabled or its sessions were ended since: a login in progress must not
    survive that. None, too, if a condition of `use` no longer holds. The cost does not depend on
    how many sessions the account has.
    Raises: DatabaseConnectionLost if the session may be open; DatabaseUnavailable if it is not.
    """
    columns, pair = _new_session(rt, account.id, client, is_limited=is_limited)
    entry = audit.entry(rt, event)
    if not opening.add_if_unchanged(rt.database, account, columns, entry, use):
        return None
    note_caller(account.id, columns["id"])
    return pair


def rotate(rt: Runtime, presented: str, client: Client, arrived_at: datetime) -> TokenPair:
    """Exchange a refresh token for a new pair.

    Raises: TokenInvalid, TokenExpired, AccountDisabled, PasswordChangeRequired, RefreshTokenStale;
    RefreshTokenReused, after every session of the user has been ended.
    Source: spec, Endpoint rules 6; decisions A6, E5, E7, E16.
    """
    token = refresh_token.parse(rt.keyring, presented)
    if token is None:
        raise TokenInvalid
    with rotations.awaiting_concurrent_requests(rt, token.digest):
        return _rotate(rt, token, client, arrived_at)


def _rotate(rt: Runtime, token: RefreshToken, client: Client, arrived_at: datetime) -> TokenPair:
    # Evidence of an honest race, needed while Redis is down and cannot provide commit times.
    was_live_on_arrival = (
        rt.fail_fast_breaker.is_broken
        and queries.find_by_live_token(rt.database, token) is not None
    )
    now = rt.clock.now()
    successor = refresh_token.new(rt.keyring, _refresh_expiry(rt, now), selector=token.selector)
    rotated = queries.rotate(
        rt.database,
        token,
        successor,
        client,
        now,
        enforces_change=_enforces_change(rt),
    )
    if rotated is None:
        _refuse_rotation(rt, token, client, arrived_at, was_live_on_arrival=was_live_on_arrival)
    session_id, user_id = rotated
    rotations.record_commit(rt, token.digest)
    note_caller(user_id, session_id)
    return _pair(rt, session_id, user_id, successor, now)


def _refuse_rotation(
    rt: Runtime,
    token: RefreshToken,
    client: Client,
    arrived_at: datetime,
    *,
    was_live_on_arrival: bool,
) -> NoReturn:
    """Raise the reason a token was refused; a replay first ends all of the user's sessions."""
    token_session = queries.find_by_token(rt.database, token)
    if token_session is None:
        raise TokenInvalid
    if token_session.status != Status.ACTIVE:
        raise AccountDisabled
    if token_session.revoked_at is not None:
        raise TokenInvalid
    if not token.is_stored_as(token_session.refresh_digest) and not was_live_on_arrival:
        replay.refuse_spent(rt, token, token_session, client, arrived_at)
    if token_session.expires_at <= rt.clock.now():
        raise TokenExpired
    if token_session.is_limited or is_password_change_forced(rt, token_session):
        raise PasswordChangeRequired
    # Another request has just exchanged it, or the obstacle has gone meanwhile.
    raise RefreshTokenStale


def list_sessions(
    rt: Runtime, user_id: int, presented: str | None
) -> list[tuple[queries.Listed, bool]]:
    """Return the live sessions, each with whether the presented refresh token is its live one.

    At most `queries.MAX_LISTED`: the most recently seen, and the current one.
    """
    current = digest(presented) if presented else ""
    rows = queries.list_live(rt.database, user_id, rt.clock.now(), current)
    return [(row, hmac.compare_digest(row.refresh_digest, current)) for row in rows]


def lock_account(rt: Runtime, session: Session, principal: Principal) -> Account:
    """Lock the caller's account until the commit and return it as it is now.

    Raises: AccountDisabled, TokenInvalid, if either has become true since the access check.
    """
    account = users_queries.lock_and_find(session, principal.user_id)
    if account is not None and account.status != Status.ACTIVE:
        raise AccountDisabled
    if account is None or not is_live(rt, session, principal.session_id):
        raise TokenInvalid
    return account


def is_live(rt: Runtime, session: Session, session_id: str) -> bool:
    """Return whether a session has neither ended nor expired, in the caller's transaction."""
    return queries.is_live(session, session_id, rt.clock.now())


def revoke_all(rt: Runtime, session: Session, user_id: int) -> int:
    """End every session of a user in the caller's transaction; return how many ended."""
    revocation_events.publish_after_commit(rt, session, user_id)
    return queries.revoke_all(session, user_id, rt.clock.now())


def filter_open(rt: Runtime, session_ids: Collection[str]) -> set[str]:
    """Return which of these sessions may continue: the checks of `authenticate` for many at once.

    Excludes sessions that may only change the password. Raises: DatabaseUnavailable.
    """
    return queries.list_open_among(
        rt.database, session_ids, rt.clock.now(), enforces_change=_enforces_change(rt)
    )


def _new_session(
    rt: Runtime, user_id: int, client: Client, *, is_limited: bool
) -> tuple[dict[str, Any], TokenPair]:
    """Return a session's columns and its first token pair."""
    now, session_id = rt.clock.now(), random_uuid()
    token = refresh_token.new(rt.keyring, _refresh_expiry(rt, now))
    columns = {
        "id": session_id,
        "user_id": user_id,
        "refresh_selector": token.selector_digest,
        "refresh_digest": token.digest,
        "is_limited": is_limited,
        "ip_address": client.address,
        "user_agent": client.user_agent,
        "created_at": now,
        "last_seen_at": now,
        "expires_at": token.expires_at,
    }
    return columns, _pair(rt, session_id, user_id, token, now)


def _pair(
    rt: Runtime, session_id: str, user_id: int, token: RefreshToken, now: datetime
) -> TokenPair:
    access_seconds = rt.settings.get(keys.ACCESS_TTL_SECONDS)
    life = timedelta(seconds=access_seconds)
    return TokenPair(
        access_token=access_token.issue(rt.access_tokens, session_id, user_id, now, life),
        access_seconds=access_seconds,
        refresh_token=token.text,
        refresh_seconds=rt.settings.get(keys.REFRESH_TTL_SECONDS),
    )


def _refresh_expiry(rt: Runtime, now: datetime) -> datetime:
    return now + timedelta(seconds=rt.settings.get(keys.REFRESH_TTL_SECONDS))
