"""Decides whether a spent refresh token is an honest race or a replay (decisions A6, E7)."""

from datetime import datetime, timedelta
from typing import NoReturn

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import TokenExpired, TokenInvalid
from app.core.client import Client
from app.core.runtime import Runtime
from app.sessions import queries, revocation_events, rotations
from app.sessions.errors import RefreshTokenReused, RefreshTokenStale
from app.sessions.refresh_token import RefreshToken
from app.settings import keys
from app.users import queries as users_queries


def refuse_spent(
    rt: Runtime,
    token: RefreshToken,
    token_session: queries.TokenSession,
    client: Client,
    arrived_at: datetime,
) -> NoReturn:
    """Refuse a spent token; a replay, unlike an honest race, ends all of the user's sessions.

    Raises: TokenExpired, RefreshTokenStale, RefreshTokenReused; TokenInvalid for a replay whose
    session has ended meanwhile.
    """
    if min(token.expires_at, token_session.expires_at) <= rt.clock.now():
        raise TokenExpired
    spent_at = rotations.committed_at(rt, token.digest)
    if spent_at is None and token.is_stored_as(token_session.previous_digest):
        spent_at = token_session.last_seen_at
    if spent_at is not None and (
        arrived_at < spent_at or _is_within_grace(rt, token_session, client, arrived_at - spent_at)
    ):
        raise RefreshTokenStale
    if _end_all(rt, token_session, client):
        raise RefreshTokenReused
    raise TokenInvalid


def _is_within_grace(
    rt: Runtime, token_session: queries.TokenSession, client: Client, late_by: timedelta
) -> bool:
    grace = timedelta(seconds=rt.settings.get(keys.REUSE_GRACE_SECONDS))
    same_browser = client.user_agent is not None and client.user_agent == token_session.user_agent
    return bool(grace) and same_browser and late_by <= grace


def _end_all(rt: Runtime, token_session: queries.TokenSession, client: Client) -> bool:
    """End all of the user's sessions, in a transaction of its own that the error cannot roll back.

    False, and none ends, if this session has ended since it was read: the user's present sessions
    began after another request detected the replay first, or after a logout (decision E5).
    """
    with rt.transaction() as session:
        users_queries.lock(session, token_session.user_id)
        now = rt.clock.now()
        if not queries.is_live(session, token_session.session_id, now):
            return False
        removed = queries.revoke_all(session, token_session.user_id, now)
        revocation_events.publish_after_commit(rt, session, token_session.user_id)
        event = Event(
            Action.USER_REFRESH_TOKEN_REUSE_DETECTED,
            EntityType.USER,
            client=client,
            user_id=token_session.user_id,
            entity_id=token_session.user_id,
            details={"session_id": token_session.session_id, "removed": removed},
        )
        audit.record(rt, session, event)
    return True
