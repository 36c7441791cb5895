"""/auth/refresh, /auth/logout, /auth/sessions."""

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.core.access import (
    AccountDisabled,
    PasswordChangeRequired,
    Principal,
    TokenExpired,
    TokenInvalid,
    TokenMissing,
)
from app.sessions import responses, revocation, service
from app.sessions.errors import (
    RefreshTokenReused,
    RefreshTokenStale,
    SessionNotFound,
    SessionUserMismatch,
)
from app.sessions.rotations import Arrival
from app.sessions.schemas import RefreshedData, RevokedSessionsData, SessionItem
from app.web import cookies, origin
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.guards import login_required, presented_token
from app.web.operation import answers, reads_refresh_cookie
from app.web.peer import arrived_at, client, opened_connection
from app.web.runtime import runtime

bp = Blueprint("sessions", __name__, url_prefix="/api/v1/auth")


@bp.post("/refresh")
@anonymous_route()
@reads_refresh_cookie
@answers(
    RefreshedData(),
    errors=(
        *origin.SOURCE_ERRORS,
        *origin.CSRF_ERRORS,
        TokenMissing,
        TokenInvalid,
        TokenExpired,
        AccountDisabled,
        PasswordChangeRequired,
        RefreshTokenStale,
        RefreshTokenReused,
    ),
    name="refreshSession",
)
def refresh() -> ResponseReturnValue:
    """Exchange the refresh cookie for a new pair of tokens."""
    origin.check_source_and_token()
    token = cookies.refresh_cookie()
    if token is None:
        raise TokenMissing
    pair = service.rotate(runtime(), token, client(), Arrival(arrived_at(), opened_connection()))
    return cookies.write(ok({"expires_in": pair.access_seconds}), pair)


@bp.post("/logout")
@anonymous_route()
@reads_refresh_cookie
@answers(errors=(*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS))
def logout() -> ResponseReturnValue:
    """End the current session and clear the cookies; works without a session, too."""
    refresh_token = cookies.refresh_cookie()
    has_cookies = refresh_token is not None or cookies.access_cookie() is not None
    if has_cookies:
        origin.check_source_and_token()
    revocation.log_out(runtime(), refresh_token, presented_token(), client())
    # SameSite withholds the cookies from another site's form post, but a response that clears them
    # would still take effect and sign the user out.
    return cookies.clear(ok()) if has_cookies or origin.is_source_trusted() else ok()


@bp.get("/sessions")
@login_required()
@answers(SessionItem(many=True))
def list_sessions(principal: Principal) -> ResponseReturnValue:
    """List where the account is signed in; the refresh cookie identifies the current session.

    If there are more than 500, the most recently seen ones are listed, and the current one.
    """
    listed = service.list_sessions(runtime(), principal.user_id, cookies.refresh_cookie())
    return ok([responses.session_item(row, is_current=current) for row, current in listed])


@bp.delete("/sessions/others")
@login_required()
@reads_refresh_cookie
@answers(
    RevokedSessionsData(), errors=(TokenMissing, SessionUserMismatch), name="revokeOtherSessions"
)
def revoke_others(principal: Principal) -> ResponseReturnValue:
    """Sign out everywhere else; the refresh cookie identifies the session to keep."""
    token = cookies.refresh_cookie()
    if token is None:
        raise TokenMissing
    return ok({"removed": revocation.revoke_others(runtime(), principal.user_id, token, client())})


@bp.delete("/sessions/<session_id>")
@login_required()
@answers(errors=(SessionNotFound,))
def revoke_session(principal: Principal, session_id: str) -> ResponseReturnValue:
    """End one session; the cookies are cleared if it is the current one."""
    presented = cookies.refresh_cookie()
    was_current = revocation.revoke(runtime(), principal, session_id, presented, client())
    return cookies.clear(ok()) if was_current else ok()
