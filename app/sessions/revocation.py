"""Ending sessions: by signing out, one from the list, or all but the current one."""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.browsers import queries as browsers
from app.core.access import Operator, Principal, SessionUserMismatch, TokenInvalid
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.texts import shortened
from app.crypto.tokens import digest
from app.sessions import access_token, queries, refresh_token, service
from app.sessions.errors import SessionNotFound
from app.sessions.models import LoginSession
from app.settings import keys
from app.store import bulk
from app.users import queries as users_queries
from app.users import service as users

# Of what opens a session and is made single-use by its row: see app/login/completion.py.
LIVES_OF_PROOFS = (
    keys.EMAIL_CODE_TTL_SECONDS,
    keys.MFA_FLOW_TTL_SECONDS,
    keys.PASSKEY_FLOW_TTL_SECONDS,
)


def revoke_others(
    rt: Runtime, principal: Principal, presented: str, client: Client, device: str | None = None
) -> int:
    """End every session but the one whose live refresh token is presented; return how many ended.

    Nor is any browser remembered but this one, whose cookie is `device`.

    Of two sessions that end each other at once, one is refused: somebody stays signed in.
    Raises: TokenInvalid, AccountDisabled, SessionUserMismatch.
    """
    now, user_id = rt.clock.now(), principal.user_id
    current = _find_open(rt, presented, now)
    if current is None:
        raise TokenInvalid
    if current.user_id != user_id:
        raise SessionUserMismatch
    with rt.transaction() as session:
        service.lock_account(rt, session, principal, current.id)
        users_queries.drop_pending_email(session, user_id)
        removed = queries.revoke_others(session, user_id, current.id, now)
        browsers.void(session, user_id, except_digest=device and digest(device))
        details = {"removed": removed}
        _record_and_publish(
            rt, session, Action.USER_REVOKE_OTHER_SESSIONS, user_id, client, details
        )
    return removed


def revoke(
    rt: Runtime, principal: Principal, session_id: str, presented: str | None, client: Client
) -> bool:
    """End one session of the user; return whether it was the caller's own. Idempotent.

    The session of the `presented` refresh token counts as the caller's own, too.
    Raises: SessionNotFound, also for another user's session; TokenInvalid, AccountDisabled.
    """
    now, session_id = rt.clock.now(), canonical_id(session_id)
    presented_session = _find_open(rt, presented, now)
    with rt.transaction() as session:
        user_id = principal.user_id
        if queries.find_owner(session, session_id) != user_id:
            raise SessionNotFound
        own_ids = {principal.session_id, presented_session and presented_session.id}
        is_current = session_id in own_ids
        if is_current:
            users_queries.lock(session, user_id, key_share=True)
        else:
            service.lock_account(rt, session, principal)
        if queries.revoke(session, session_id, now):
            if not is_current:
                users_queries.drop_pending_email(session, user_id)
            details = {"session_id": session_id, "revoked_current": is_current}
            _record_and_publish(rt, session, Action.USER_REVOKE_SESSION, user_id, client, details)
    return is_current


def revoke_any(rt: Runtime, by: Operator, session_id: str, *, user_id: int | None = None) -> int:
    """End a session of any user, or of this one; return 1, or 0 if it had already ended.

    Raises: SessionNotFound; ClosedToTokens for a program and an administrator's session.
    """
    unknown = SessionNotFound(f"There is no session {shortened(session_id)}.")
    try:
        session_id = canonical_id(session_id)
    except SessionNotFound:
        raise unknown from None
    with rt.transaction() as session:
        owner = queries.find_owner(session, session_id)
        if owner is None or user_id not in (None, owner):
            raise unknown
        users_queries.lock(session, owner, key_share=True)
        account = users.get(session, owner)
        users.require_open_to(by, account)
        if not queries.revoke(session, session_id, rt.clock.now()):
            return 0
        users_queries.drop_pending_email(session, owner)
        users.publish_ended_access(rt, session, owner)
        details = {"session_id": session_id}
        users.record_by(rt, session, by, Action.ADMIN_REVOKE_USER_SESSION, account, details)
    return 1


def log_out(rt: Runtime, presented: str | None, token: str | None, client: Client) -> None:
    """End the open session of a refresh token, else of an access token, expired or not."""
    now = rt.clock.now()
    session_id = _session_to_end(rt, presented, token, now)
    if session_id is None:
        return
    with rt.transaction() as session:
        user_id = queries.find_owner(session, session_id) or 0
        if queries.revoke(session, session_id, now):
            details = {"session_id": session_id}
            _record_and_publish(rt, session, Action.USER_LOGOUT, user_id, client, details)


def delete_expired(rt: Runtime) -> int:
    """Delete sessions whose tokens have all expired; return how many.

    Not while what has opened one may still be valid: its row lets that open no other.
    """
    now = rt.clock.now()
    opened_before = now - timedelta(seconds=max(map(rt.settings.get, LIVES_OF_PROOFS)))
    find = partial(queries.find_expired, opened_before=opened_before)
    delete = partial(queries.delete_expired, opened_before=opened_before)
    return bulk.delete_found(rt, find, delete, now)


def canonical_id(session_id: str) -> str:
    """Return the id as stored, in lower case.

    Raises: SessionNotFound for anything that is not a UUID.
    """
    typed = session_id.lower()
    try:
        # UUID() also accepts braces, a URN prefix, and digits without hyphens.
        if str(uuid.UUID(typed)) == typed:
            return typed
    except ValueError:
        pass
    raise SessionNotFound


def _record_and_publish(
    rt: Runtime,
    session: Session,
    action: Action,
    user_id: int,
    client: Client,
    details: Mapping[str, object],
) -> None:
    """Record what has ended, and notify every process of it after the commit."""
    users.publish_ended_access(rt, session, user_id)
    event = Event(
        action,
        EntityType.AUTH_SESSION,
        client=client,
        user_id=user_id,
        details=details,
    )
    audit.record(rt, session, event)


def _session_to_end(
    rt: Runtime, presented: str | None, token: str | None, now: datetime
) -> str | None:
    if (current := _find_open(rt, presented, now)) is not None:
        return current.id
    try:
        return access_token.read(rt.keyring, token or "", now, ignore_expiry=True)[0]
    except TokenInvalid:
        return None


def _find_open(rt: Runtime, presented: str | None, now: datetime) -> LoginSession | None:
    """Return the open session whose live refresh token is presented."""
    token = refresh_token.parse(rt.keyring, presented) if presented else None
    if token is None:
        return None
    with rt.reading() as session:
        return queries.find_open(session, token, now)
