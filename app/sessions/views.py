"""/auth/refresh, /auth/logout, /auth/sessions."""

from flask import Blueprint
from sqlalchemy import RowMapping

from app.core.access import Principal, TokenMissing, TokenPair
from app.sessions import errors, revocation, rotation, service
from app.sessions.schemas import RefreshedData, RevokedSessionsData, SessionItem
from app.web import cookies, origin
from app.web.guards import anonymous_route, login_required, presented_token
from app.web.operation import answers
from app.web.peer import arrived_at, client
from app.web.runtime import runtime

bp = Blueprint("sessions", __name__, url_prefix="/api/v1/auth")


@bp.post("/refresh")
@anonymous_route()
@answers(
    RefreshedData(),
    errors=(*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS, *errors.REFRESH),
    name="refreshSession",
    reads_refresh_cookie=True,
)
def refresh() -> TokenPair:
    """Exchange the refresh cookie for a new pair of tokens."""
    origin.check_source_and_token()
    token = cookies.refresh_cookie()
    if token is None:
        raise TokenMissing
    pair = rotation.rotate(runtime(), token, client(), arrived_at())
    cookies.sign_in(pair)
    return pair


@bp.post("/logout")
@anonymous_route()
@answers(errors=(*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS), reads_refresh_cookie=True)
def logout() -> None:
    """End the current session and clear the cookies; also works without a session."""
    refresh_token = cookies.refresh_cookie()
    has_cookies = refresh_token is not None or cookies.access_cookie() is not None
    if has_cookies:
        origin.check_source_and_token()
    revocation.log_out(runtime(), refresh_token, presented_token(), client())
    # SameSite withholds the cookies from another site's form post, but a response that clears them
    # would still take effect and sign the user out.
    if has_cookies or origin.is_source_trusted():
        cookies.sign_out()


@bp.get("/sessions")
@login_required()
@answers(SessionItem(many=True))
def list_sessions(principal: Principal) -> list[RowMapping]:
    """List where the account is signed in; the refresh cookie identifies the current session.

    If there are more than 500, the most recently seen ones are listed, and the current one.
    """
    return service.list_sessions(runtime(), principal.user_id, cookies.refresh_cookie())


@bp.delete("/sessions/others")
@login_required()
@answers(
    RevokedSessionsData(),
    errors=errors.REVOKE_OTHERS,
    name="revokeOtherSessions",
    reads_refresh_cookie=True,
)
def revoke_others(principal: Principal) -> dict[str, int]:
    """Sign out everywhere else; the refresh cookie identifies the session to keep."""
    token = cookies.refresh_cookie()
    if token is None:
        raise TokenMissing
    device = cookies.device_cookie()
    return {"removed": revocation.revoke_others(runtime(), principal, token, client(), device)}


@bp.delete("/sessions/<session_id>")
@login_required()
@answers(errors=(errors.SessionNotFound,))
def revoke_session(principal: Principal, session_id: str) -> None:
    """End one session; the cookies are cleared if it is the current one."""
    presented = cookies.refresh_cookie()
    if revocation.revoke(runtime(), principal, session_id, presented, client()):
        cookies.sign_out()
