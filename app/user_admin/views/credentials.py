"""/admin/users/{id}: its sessions, and what it signs in with."""

from typing import Any

from flask import Blueprint

from app.core.access import Operator, Principal, Scope
from app.sessions import revocation
from app.sessions import service as sessions
from app.sessions.schemas import RevokedSessionsData, SessionItem
from app.user_admin import credentials, errors
from app.user_admin import service as accounts
from app.user_admin.schemas import (
    CredentialsData,
    RemoveCredentialQuery,
    RemovedFactorsData,
)
from app.users import service as users
from app.users.errors import UserNotFound
from app.web.guards import admin_may_read, admin_required
from app.web.operation import answers
from app.web.request import query_args
from app.web.runtime import runtime

bp = Blueprint("admin_credentials", __name__, url_prefix="/api/v1/admin/users/<row:id>")


@bp.get("/credentials")
@admin_may_read()
@answers(CredentialsData(), errors=(UserNotFound,), name="adminGetUserCredentials")
def show(id: int) -> credentials.Credentials:
    """Return what an account signs in with; no secret is among it."""
    return credentials.summarize(runtime(), id)


@bp.get("/sessions")
@admin_required(opened_by=Scope.ADMIN_READ)
@answers(SessionItem(many=True), errors=(UserNotFound,), name="adminListUserSessions")
def list_sessions(by: Operator, id: int) -> list[dict[str, Any]]:
    """List where an account is signed in, the last seen first; of more than 500 only those."""
    rt = runtime()
    with rt.reading() as session:
        users.get(session, id)
    own = by.principal.session_id if isinstance(by.principal, Principal) else None
    found = sessions.list_sessions(rt, id, None)
    return [{**each, "is_current": each["id"] == own} for each in found]


@bp.post("/sessions/revoke")
@admin_required(opened_by=Scope.ADMIN)
@answers(RevokedSessionsData(), errors=(UserNotFound,), name="adminRevokeUserSessions")
def revoke_sessions(by: Operator, id: int) -> dict[str, int]:
    """Sign an account out everywhere."""
    return {"removed": accounts.revoke_sessions(runtime(), by, id)}


@bp.delete("/sessions/<session_id>")
@admin_required(opened_by=Scope.ADMIN)
@answers(errors=errors.REVOKE_SESSION, name="adminRevokeUserSession")
def revoke_session(by: Operator, id: int, session_id: str) -> None:
    """End one session of an account, or leave it ended."""
    revocation.revoke_any(runtime(), by, session_id, user_id=id)


@bp.delete("/mfa")
@admin_required(confirmation="if_set")
@answers(RemovedFactorsData(), errors=errors.RESET_MFA, name="adminResetUserMfa")
def reset_mfa(by: Operator, id: int) -> dict[str, int]:
    """Remove the second factors of an account and end its sessions; its owner is told by mail."""
    return {"removed_factors": credentials.reset_mfa(runtime(), by, id)[1]}


@bp.delete("/passkeys/<row:passkey_id>")
@admin_required(confirmation="if_set")
@query_args(RemoveCredentialQuery)
@answers(errors=errors.REMOVE_PASSKEY, name="adminRemoveUserPasskey")
def remove_passkey(by: Operator, id: int, passkey_id: int, is_forced: bool) -> None:
    """Remove a passkey of an account; its owner is told by mail."""
    credentials.remove_passkey(runtime(), by, id, passkey_id, is_forced=is_forced)


@bp.delete("/external-links/<row:link_id>")
@admin_required(confirmation="if_set")
@query_args(RemoveCredentialQuery)
@answers(errors=errors.REMOVE_LINK, name="adminRemoveUserExternalLink")
def remove_link(by: Operator, id: int, link_id: int, is_forced: bool) -> None:
    """Remove a sign-in of an account by another service; its owner is told by mail."""
    credentials.remove_link(runtime(), by, id, link_id, is_forced=is_forced)


@bp.post("/unlock")
@admin_required(opened_by=Scope.ADMIN)
@answers(errors=errors.UNLOCK, name="adminUnlockUser")
def unlock(by: Operator, id: int) -> None:
    """Forget the failed sign-ins of an account, from wherever they came."""
    credentials.unlock(runtime(), by, id)
