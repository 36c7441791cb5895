"""The answers of a login."""

from flask import Response

from app.login.service import LoginOutcome, MfaRequired
from app.web import cookies
from app.web.envelope import ok


def login_response(outcome: LoginOutcome | MfaRequired) -> Response:
    """Set the session's cookies and report its status; or describe the second factor required."""
    if isinstance(outcome, MfaRequired):
        return ok(
            {
                "status": outcome.status,
                "flow_token": outcome.flow_token,
                "expires_in": outcome.expires_in,
                "methods": outcome.methods,
            }
        )
    data = {"status": outcome.status, "expires_in": outcome.pair.access_seconds}
    return cookies.write(ok(data), outcome.pair)
