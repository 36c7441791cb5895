"""The three cookies of a session."""

from flask import Response, after_this_request, request

from app.core.access import TokenPair
from app.core.tokens import random_token
from app.web import site
from app.web.runtime import runtime

ACCESS_COOKIE = "service_access"
REFRESH_COOKIE = "service_refresh"
CSRF_COOKIE = "service_csrf"
REFRESH_PATH = "/api/v1/auth"


def access_cookie() -> str | None:
    """Return the presented access token; "" for an empty cookie, None without one."""
    return presented(ACCESS_COOKIE)


def refresh_cookie() -> str | None:
    """Return the presented refresh token; None if there is none or it is empty."""
    return presented(REFRESH_COOKIE) or None


def csrf_cookie() -> str | None:
    """Return the presented CSRF token; None if there is none or it is empty."""
    return presented(CSRF_COOKIE) or None


def sign_in(pair: TokenPair | None) -> None:
    """Set the cookies of a session with the answer to this request; None leaves them alone."""
    if pair is not None:
        after_this_request(lambda response: write(response, pair))


def sign_out() -> None:
    """Remove the cookies with the answer to this request."""
    after_this_request(clear)


def write(response: Response, pair: TokenPair) -> Response:
    """Set the cookies of a token pair and a new CSRF token."""
    put(response, ACCESS_COOKIE, pair.access_token, pair.access_seconds, "/")
    put(response, CSRF_COOKIE, random_token(), pair.refresh_seconds, "/", is_readable=True)
    put(response, REFRESH_COOKIE, pair.refresh_token, pair.refresh_seconds, REFRESH_PATH)
    return response


def clear(response: Response) -> Response:
    """Remove all three cookies."""
    put(response, ACCESS_COOKIE, "", 0, "/")
    put(response, CSRF_COOKIE, "", 0, "/", is_readable=True)
    put(response, REFRESH_COOKIE, "", 0, REFRESH_PATH)
    return response


def presented(wanted: str) -> str | None:
    """Return a cookie's value; None if it was not sent.

    Nearly every request calls this, and `request.cookies` would decode all cookies of the site.
    """
    for cookie in request.environ.get("HTTP_COOKIE", "").split(";"):
        name, separator, value = cookie.partition("=")
        if name.strip() == wanted and separator:
            text: str = value.strip()
            return text
    return None


def put(
    response: Response, name: str, value: str, seconds: int, path: str, *, is_readable: bool = False
) -> None:
    """Add one Set-Cookie header; every value is URL-safe, so nothing needs quoting."""
    http_only = "" if is_readable else "; HttpOnly"
    secure = "; Secure" if runtime().settings.get(site.COOKIE_SECURE) else ""
    response.headers.add(
        "Set-Cookie",
        f"{name}={value}; Path={path}; Max-Age={seconds}{http_only}{secure}; SameSite=Lax",
    )
