"""Decides whether a spent refresh token is an honest race or a replay (decisions A6, E7)."""

from datetime import datetime, timedelta
from typing import NoReturn

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import TokenExpired, TokenInvalid
from app.core.client import Client
from app.core.runtime import Runtime
from app.sessions import endings, queries, rotations
from app.sessions.errors import RefreshTokenReused, RefreshTokenStale
from app.sessions.refresh_token import RefreshToken
from app.settings import keys
from app.users import queries as users_queries


def refuse_spent(
    rt: Runtime,
    token: RefreshToken,
    holder: queries.Holder,
    client: Client,
    arrived_at: datetime,
) -> NoReturn:
    """Refuse a spent token; a replay, unlike an honest race, ends all of the user's sessions.

    Raises: TokenExpired, RefreshTokenStale, RefreshTokenReused; TokenInvalid for a replay whose
    session has ended meanwhile.
    """
    if min(token.expires_at, holder.expires_at) <= rt.clock.now():
        raise TokenExpired
    spent_at = rotations.committed_at(rt, token.digest)
    if spent_at is None and token.is_stored_as(holder.previous_digest):
        spent_at = holder.last_seen_at
    if spent_at is not None and (
        arrived_at < spent_at or _is_within_grace(rt, holder, client, arrived_at - spent_at)
    ):
        raise RefreshTokenStale
    if _end_all(rt, holder, client):
        raise RefreshTokenReused
    raise TokenInvalid


def _is_within_grace(
    rt: Runtime, holder: queries.Holder, client: Client, late_by: timedelta
) -> bool:
    grace = timedelta(seconds=rt.settings.get(keys.REUSE_GRACE_SECONDS))
    same_browser = client.user_agent is not None and client.user_agent == holder.user_agent
    return bool(grace) and same_browser and late_by <= grace


def _end_all(rt: Runtime, holder: queries.Holder, client: Client) -> bool:
    """End all of the user's sessions, in a transaction of its own that the error cannot roll back.

    False, and none ends, if this session has ended since it was read: the user's present sessions
    began after another request detected the replay first, or after a logout (decision E5).
    """
    with rt.transaction() as session:
        users_queries.lock(session, holder.user_id)
        now = rt.clock.now()
        if not queries.is_live(session, holder.session_id, now):
            return False
        removed = queries.revoke_all(session, holder.user_id, now)
        endings.announce(rt, session, holder.user_id)
        event = Event(
            Action.USER_REFRESH_TOKEN_REUSE_DETECTED,
            EntityType.USER,
            client=client,
            user_id=holder.user_id,
            entity_id=holder.user_id,
            details={"session_id": holder.session_id, "removed": removed},
        )
        audit.record(rt, session, event)
    return True
