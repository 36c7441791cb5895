"""The three cookies of a session, and the one by which a browser is known again."""

from flask import Response, after_this_request, request

from app.core.access import TokenPair
from app.crypto.tokens import digest, random_token
from app.web import site
from app.web.runtime import runtime

ACCESS_COOKIE = "service_access"
REFRESH_COOKIE = "service_refresh"
CSRF_COOKIE = "service_csrf"
REFRESH_PATH = "/api/v1/auth"
BROWSER_COOKIE = "service_browser"
MAX_BROWSER_ID_LENGTH = 64


def access_cookie() -> str | None:
    """Return the presented access token; "" for an empty cookie, None without one."""
    return request.cookies.get(ACCESS_COOKIE)


def refresh_cookie() -> str | None:
    """Return the presented refresh token; None if there is none or it is empty."""
    return request.cookies.get(REFRESH_COOKIE) or None


def csrf_cookie() -> str | None:
    """Return the presented CSRF token; None if there is none or it is empty."""
    return request.cookies.get(CSRF_COOKIE) or None


def browser_digest() -> str | None:
    """Return the digest of the browser's id; None if it has none."""
    browser_id = request.cookies.get(BROWSER_COOKIE)
    return digest(browser_id[:MAX_BROWSER_ID_LENGTH]) if browser_id else None


def remember_browser(seconds: int) -> str:
    """Have the browser keep its id, a new one if it has none, for so long; return the digest.

    Whoever opens a mailed link with it has asked for that link in this browser.
    """
    browser_id = request.cookies.get(BROWSER_COOKIE, "")[:MAX_BROWSER_ID_LENGTH] or random_token()

    @after_this_request
    def keep(response: Response) -> Response:
        put(response, BROWSER_COOKIE, browser_id, seconds, REFRESH_PATH)
        return response

    return digest(browser_id)


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


def put(
    response: Response, name: str, value: str, seconds: int, path: str, *, is_readable: bool = False
) -> None:
    """Set a cookie for so many seconds; 0 removes it."""
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=path,
        secure=runtime().settings.get(site.COOKIE_SECURE),
        httponly=not is_readable,
        samesite="Lax",
    )
