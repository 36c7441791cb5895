"""Exchanging a refresh token for a new pair, and telling an honest race from a replay.

A request that arrived before the winning rotation was committed has lost an honest race. The row's
timestamp is taken before the commit, so it misses requests that arrived in between. Workers
therefore share the commit time through Redis; without Redis, the row's timestamp must do, along
with whether the loser saw the token live. Moreover, a rotation waits a moment before it starts, for
concurrent requests to arrive.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from redis.exceptions import RedisError

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import (
    AccountDisabled,
    PasswordChangeRequired,
    TokenExpired,
    TokenInvalid,
    TokenPair,
)
from app.core.client import Client
from app.core.logs import note_caller
from app.core.runtime import Runtime
from app.sessions import queries, refresh_token, service
from app.sessions.errors import RefreshTokenReused, RefreshTokenStale
from app.sessions.models import LoginSession
from app.sessions.refresh_token import RefreshToken
from app.settings import keys
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Status

# Longer than any request can be in flight (see `web.peer.arrived_at`).
COMMIT_TIME_TTL_SECONDS = 120
# The winner may have committed before its commit time reaches Redis.
COMMIT_TIME_RETRY_SECONDS = 0.05
# Long enough for the event loop to look at every connection. After a pause of 0 it goes on with who
# waits to go on, and looks at none.
FIRST_LOOK_SECONDS = 0.001
# Requests sent at once arrive with no longer gaps; a client refreshes so rarely, about every 15
# minutes, that the delay goes unnoticed.
MAX_ARRIVAL_GAP_SECONDS = 0.025
MAX_WAITS = 8

_in_progress: Counter[str] = Counter()


def rotate(rt: Runtime, presented: str, client: Client, arrived_at: datetime) -> TokenPair:
    """Exchange a refresh token for a new pair.

    Raises: TokenInvalid, TokenExpired, AccountDisabled, PasswordChangeRequired, RefreshTokenStale;
    RefreshTokenReused, after every session of the user has been ended.
    """
    token = refresh_token.parse(rt.keyring, presented)
    if token is None:
        raise TokenInvalid
    with _awaiting_concurrent_requests(rt, token.digest):
        now, enforces_change = rt.clock.now(), users.enforces_password_change(rt)
        was_live = rt.redis.fail_fast.is_broken and _is_live_token(rt, token, now)
        expires_at = service.refresh_expiry(rt, now)
        short_expiry = service.refresh_expiry(rt, now, is_short=True)
        successor = refresh_token.new(rt.keyring, expires_at, selector=token.selector)
        with rt.transaction() as session:
            rotated = queries.rotate(
                session,
                token,
                successor,
                client,
                now,
                short_expiry=short_expiry,
                enforces_change=enforces_change,
            )
        if rotated is None:
            _refuse_rotation(rt, token, client, arrived_at, was_live_on_arrival=was_live)
        session_id, user_id, is_short = rotated
        _record_commit(rt, token.digest)
        note_caller(user_id, session_id=session_id)
        return service.pair(rt, session_id, user_id, successor, now, is_short=is_short)


def _is_live_token(rt: Runtime, token: RefreshToken, now: datetime) -> bool:
    """Return evidence of an honest race, for when Redis cannot provide commit times."""
    with rt.reading() as session:
        return queries.find_open(session, token, now) is not None


def _refuse_rotation(
    rt: Runtime,
    token: RefreshToken,
    client: Client,
    arrived_at: datetime,
    *,
    was_live_on_arrival: bool,
) -> NoReturn:
    """Raise the reason a token was refused; a replay first ends all of the user's sessions."""
    with rt.reading() as session:
        token_session = queries.find_by_token(session, token)
    if token_session is None:
        raise TokenInvalid
    if token_session.user.status != Status.ACTIVE:
        raise AccountDisabled
    if token_session.revoked_at is not None:
        raise TokenInvalid
    if not token.is_stored_as(token_session.refresh_digest) and not was_live_on_arrival:
        _refuse_spent(rt, token, token_session, client, arrived_at)
    if token_session.expires_at <= rt.clock.now():
        raise TokenExpired
    if token_session.is_limited or users.is_password_change_forced(rt, token_session.user):
        raise PasswordChangeRequired
    # Another request has just exchanged it, or the obstacle has gone meanwhile.
    raise RefreshTokenStale


def _refuse_spent(
    rt: Runtime,
    token: RefreshToken,
    token_session: LoginSession,
    client: Client,
    arrived_at: datetime,
) -> NoReturn:
    """Refuse a spent token; a replay, unlike an honest race, ends all of the user's sessions.

    Raises: TokenExpired, RefreshTokenStale, RefreshTokenReused; TokenInvalid for a replay whose
    session has ended meanwhile.
    """
    if min(token.expires_at, token_session.expires_at) <= rt.clock.now():
        raise TokenExpired
    spent_at = _committed_at(rt, token.digest)
    if spent_at is None and token.is_stored_as(token_session.previous_digest):
        spent_at = token_session.last_seen_at
    if spent_at is not None and rt.clock.is_ahead(spent_at):
        spent_at = None
    if spent_at is not None and (
        arrived_at < spent_at or _is_within_grace(rt, token_session, client, arrived_at - spent_at)
    ):
        raise RefreshTokenStale
    if _end_all(rt, token_session, client):
        raise RefreshTokenReused
    raise TokenInvalid


def _is_within_grace(
    rt: Runtime, token_session: LoginSession, client: Client, late_by: timedelta
) -> bool:
    grace = timedelta(seconds=rt.settings.get(keys.REUSE_GRACE_SECONDS))
    same_browser = client.user_agent is not None and client.user_agent == token_session.user_agent
    return bool(grace) and same_browser and late_by <= grace


def _end_all(rt: Runtime, token_session: LoginSession, client: Client) -> bool:
    """End all of the user's sessions, in a transaction of its own that the error cannot roll back.

    False, and none ends, if this session has ended since it was read: the user's present sessions
    began after another request detected the replay first, or after a logout.
    """
    with rt.transaction() as session:
        users_queries.lock(session, token_session.user_id)
        now = rt.clock.now()
        if not queries.is_live(session, token_session.id, now):
            return False
        removed = service.revoke_all(rt, session, token_session.user_id)
        event = Event(
            Action.USER_REFRESH_TOKEN_REUSE_DETECTED,
            EntityType.USER,
            client=client,
            user_id=token_session.user_id,
            entity_id=token_session.user_id,
            details={"session_id": token_session.id, "removed": removed},
        )
        audit.record(rt, session, event)
    return True


@contextmanager
def _awaiting_concurrent_requests(rt: Runtime, token_digest: str) -> Iterator[None]:
    """Give concurrent requests with the same token time to arrive and get their timestamp.

    Waits until no more arrive, at most MAX_WAITS times.
    """
    _in_progress[token_digest] += 1
    try:
        rt.clock.sleep(FIRST_LOOK_SECONDS)
        known = 1
        for _ in range(MAX_WAITS):
            if _in_progress[token_digest] <= known:
                break
            known = _in_progress[token_digest]
            rt.clock.sleep(MAX_ARRIVAL_GAP_SECONDS)
        yield
    finally:
        _in_progress[token_digest] -= 1
        if not _in_progress[token_digest]:
            del _in_progress[token_digest]


def _record_commit(rt: Runtime, spent_digest: str) -> None:
    """Record that the rotation which spent this token is now committed."""
    now, key = rt.clock.now().timestamp(), _key(spent_digest)
    rt.redis.fail_fast.attempt(lambda redis: redis.set(key, now, ex=COMMIT_TIME_TTL_SECONDS))


def _committed_at(rt: Runtime, spent_digest: str) -> datetime | None:
    """Return when the rotation that spent this token was committed; None if long ago or unknown."""
    try:
        seconds = _read(rt, spent_digest)
        if seconds is None:
            rt.clock.sleep(COMMIT_TIME_RETRY_SECONDS)
            seconds = _read(rt, spent_digest)
    except RedisError:
        return None
    return datetime.fromtimestamp(float(seconds), UTC) if seconds else None


def _read(rt: Runtime, spent_digest: str) -> str | None:
    seconds = rt.redis.fail_fast.call(lambda redis: redis.get(_key(spent_digest)))
    return str(seconds) if seconds else None


def _key(spent_digest: str) -> str:
    return f"gatehouse:rotated:{spent_digest}"
