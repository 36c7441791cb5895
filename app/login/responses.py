"""The answer of every completed login."""

from flask import Response

from app.login.service import LoginOutcome
from app.web import cookies
from app.web.envelope import ok


def login_response(outcome: LoginOutcome) -> Response:
    """Write the cookies and say what the session is good for."""
    data = {"status": outcome.status, "expires_in": outcome.pair.access_seconds}
    return cookies.write(ok(data), outcome.pair)
