"""Use cases of sessions: the access check, opening, rotating, listing, ending."""

import uuid
from datetime import datetime, timedelta

from sqlalchemy import insert
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.tokens import TokenPair, digest, random_token, random_uuid
from app.sessions import access_token, queries
from app.sessions.errors import (
    AccountDisabled,
    PasswordChangeRequired,
    RefreshTokenReused,
    RefreshTokenStale,
    SessionNotFound,
    SessionUserMismatch,
    TokenExpired,
    TokenInvalid,
)
from app.sessions.models import LoginSession
from app.settings import keys
from app.users.models import Account, Status
from app.web.principal import Principal


def authenticate(rt: Runtime, token: str) -> Principal:
    """Return who an access token stands for, as of this very moment.

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
    if access.is_limited != is_change_forced(rt, access.account):
        raise TokenInvalid
    return Principal(access.account, claims.session_id, claims.expires_at, access.is_limited)


def is_change_forced(rt: Runtime, account: Account | queries.Holder) -> bool:
    """Tell whether only a password change is open: forced, and passwords are in use at all."""
    return account.must_change_password and rt.settings.get(keys.PASSWORD_LOGIN_ENABLED)


def open_session(
    rt: Runtime, session: Session, user_id: int, client: Client, *, is_limited: bool
) -> TokenPair:
    """Start a session and return its first token pair; costs the same however many there are."""
    now, session_id, refresh_token = rt.clock.now(), random_uuid(), random_token()
    session.execute(
        insert(LoginSession).values(
            id=session_id,
            user_id=user_id,
            refresh_digest=digest(refresh_token),
            is_limited=is_limited,
            ip_address=client.address,
            user_agent=client.user_agent,
            created_at=now,
            last_seen_at=now,
            expires_at=_refresh_expiry(rt, now),
        )
    )
    return _pair(rt, session_id, user_id, refresh_token, now)


def rotate(rt: Runtime, refresh_token: str, client: Client, arrived_at: datetime) -> TokenPair:
    """Exchange a refresh token for a new pair.

    `arrived_at` is when the request reached the service. Raises: TokenInvalid, TokenExpired,
    AccountDisabled, PasswordChangeRequired, RefreshTokenStale; RefreshTokenReused, once every
    session of the user has ended. Source: spec, Endpoint rules 6; decisions A6, E5, E7, E16.
    """
    # Requests that already wait in this worker get their time of arrival before a token goes.
    rt.clock.sleep(0)
    old = digest(refresh_token)
    holder = queries.find_holder(rt.database, old)
    if holder is None:
        raise _judge_spent(rt, old, client, arrived_at)
    _require_refreshable(rt, holder)
    pair = _exchange(rt, holder, old, client)
    if pair is None:
        raise _judge_lost_race(rt, old)
    return pair


def list_sessions(
    rt: Runtime, user_id: int, refresh_token: str | None
) -> list[tuple[queries.Listed, bool]]:
    """Return the live sessions, each with whether `refresh_token` is its newest."""
    current = digest(refresh_token) if refresh_token else None
    rows = queries.list_live(rt.database, user_id, rt.clock.now())
    return [(row, row.refresh_digest == current) for row in rows]


def revoke_others(
    rt: Runtime, user_id: int, refresh_token: str, client: Client | None = None
) -> int:
    """End every session but the one `refresh_token` belongs to; return how many.

    Raises: TokenInvalid, SessionUserMismatch.
    """
    now = rt.clock.now()
    current = queries.find_holder(rt.database, digest(refresh_token))
    if current is None or current.revoked_at is not None or current.expires_at <= now:
        raise TokenInvalid
    if current.user_id != user_id:
        raise SessionUserMismatch
    with rt.transaction() as session:
        removed = queries.revoke_others(session, user_id, current.session_id, now)
        audit.record(
            rt,
            session,
            Action.USER_REVOKE_OTHER_SESSIONS,
            EntityType.AUTH_SESSION,
            client=client,
            user_id=user_id,
            details={"removed": removed},
        )
    return removed


def revoke(
    rt: Runtime,
    user_id: int,
    session_id: str,
    refresh_token: str | None,
    current_id: str,
    client: Client | None = None,
) -> bool:
    """End one session of the user and tell whether it was the caller's own; repeatable.

    Raises: SessionNotFound, also for another user's session.
    """
    now, session_id = rt.clock.now(), _canonical_id(session_id)
    holder = _holder_of(rt, refresh_token)
    with rt.transaction() as session:
        if queries.find_owner(session, session_id) != user_id:
            raise SessionNotFound
        is_current = session_id in {current_id, holder.session_id if holder else None}
        if queries.revoke(session, session_id, now):
            audit.record(
                rt,
                session,
                Action.USER_REVOKE_SESSION,
                EntityType.AUTH_SESSION,
                client=client,
                user_id=user_id,
                details={"session_id": session_id, "revoked_current": is_current},
            )
    return is_current


def log_out(
    rt: Runtime, refresh_token: str | None, token: str | None, client: Client | None = None
) -> None:
    """End the session of a refresh token or else of an access token, expired or not (E6)."""
    now = rt.clock.now()
    session_id = _session_to_end(rt, refresh_token, token)
    if session_id is None:
        return
    with rt.transaction() as session:
        user_id = queries.find_owner(session, session_id) or 0
        if queries.revoke(session, session_id, now):
            audit.record(
                rt,
                session,
                Action.USER_LOGOUT,
                EntityType.AUTH_SESSION,
                client=client,
                user_id=user_id,
                details={"session_id": session_id},
            )


def revoke_all(rt: Runtime, session: Session, user_id: int) -> int:
    """End every session of a user within a larger change; return how many."""
    return queries.revoke_all(session, user_id, rt.clock.now())


def _exchange(rt: Runtime, holder: queries.Holder, old: str, client: Client) -> TokenPair | None:
    """Swap the tokens; None if another request was faster or the session has just ended."""
    refresh_token = random_token()
    seconds = rt.settings.get(keys.REFRESH_TTL_SECONDS)
    with rt.transaction() as session:
        now = rt.clock.now()
        rotation = queries.Rotation(
            session_id=holder.session_id,
            old_digest=old,
            old_expires_at=holder.expires_at,
            new_digest=digest(refresh_token),
            new_expires_at=now + timedelta(seconds=seconds),
            client_address=client.address,
            client_user_agent=client.user_agent,
            now=now,
        )
        if not queries.rotate(session, rotation):
            return None
    return _pair(rt, holder.session_id, holder.user_id, refresh_token, now)


def _require_refreshable(rt: Runtime, holder: queries.Holder) -> None:
    if holder.status != Status.ACTIVE:
        raise AccountDisabled
    if holder.revoked_at is not None:
        raise TokenInvalid
    if holder.expires_at <= rt.clock.now():
        raise TokenExpired
    if holder.is_limited or is_change_forced(rt, holder):
        raise PasswordChangeRequired


def _judge_lost_race(rt: Runtime, old: str) -> Exception:
    """Say why a token that was live a moment ago no longer is."""
    spent = queries.find_spent(rt.database, old)
    if spent is None or spent.holder.revoked_at is not None:
        return TokenInvalid()
    return RefreshTokenStale()


def _judge_spent(rt: Runtime, old: str, client: Client, arrived_at: datetime) -> Exception:
    """Tell an honest race from a replay, and end the user's sessions for a replay."""
    spent = queries.find_spent(rt.database, old)
    if spent is None:
        return TokenInvalid()
    if spent.holder.status != Status.ACTIVE:
        return AccountDisabled()
    if spent.holder.revoked_at is not None or spent.expires_at <= rt.clock.now():
        return TokenInvalid()
    if arrived_at < spent.consumed_at or _is_within_grace(rt, spent, client, arrived_at):
        return RefreshTokenStale()
    _sound_alarm(rt, spent)
    return RefreshTokenReused()


def _is_within_grace(
    rt: Runtime, spent: queries.Spent, client: Client, arrived_at: datetime
) -> bool:
    grace = timedelta(seconds=rt.settings.get(keys.REUSE_GRACE_SECONDS))
    same_browser = client.user_agent is not None and client.user_agent == spent.holder.user_agent
    return bool(grace) and same_browser and arrived_at <= spent.consumed_at + grace


def _sound_alarm(rt: Runtime, spent: queries.Spent) -> None:
    """End everything the user has, in a transaction of its own that the error cannot undo."""
    with rt.transaction() as session:
        removed = queries.revoke_all(session, spent.holder.user_id, rt.clock.now())
        audit.record(
            rt,
            session,
            Action.USER_REFRESH_TOKEN_REUSE_DETECTED,
            EntityType.USER,
            user_id=spent.holder.user_id,
            entity_id=spent.holder.user_id,
            details={"session_id": spent.holder.session_id, "removed": removed},
        )


def _session_to_end(rt: Runtime, refresh_token: str | None, token: str | None) -> str | None:
    holder = _holder_of(rt, refresh_token)
    if holder is not None:
        return holder.session_id
    try:
        now = rt.clock.now()
        return access_token.read(rt.access_tokens, token or "", now, ignore_expiry=True).session_id
    except TokenInvalid:
        return None


def _holder_of(rt: Runtime, refresh_token: str | None) -> queries.Holder | None:
    if refresh_token is None:
        return None
    return queries.find_holder(rt.database, digest(refresh_token))


def _pair(
    rt: Runtime, session_id: str, user_id: int, refresh_token: str, now: datetime
) -> TokenPair:
    access_seconds = rt.settings.get(keys.ACCESS_TTL_SECONDS)
    life = timedelta(seconds=access_seconds)
    return TokenPair(
        access_token=access_token.issue(rt.access_tokens, session_id, user_id, now, life),
        access_seconds=access_seconds,
        refresh_token=refresh_token,
        refresh_seconds=rt.settings.get(keys.REFRESH_TTL_SECONDS),
    )


def _refresh_expiry(rt: Runtime, now: datetime) -> datetime:
    return now + timedelta(seconds=rt.settings.get(keys.REFRESH_TTL_SECONDS))


def _canonical_id(session_id: str) -> str:
    """Return the id in the form the column holds; nonsense is simply not found (E9)."""
    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        raise SessionNotFound from None
