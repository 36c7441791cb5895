"""The three cookies of a session, and two by which a browser is known again.

`service_device` is set at a sign-in: which browsers an account is used with.
`service_browser` is set when a mail is asked for: whether its link is opened where it was wanted.
"""

from flask import Response, after_this_request, request

from app.core.access import TokenPair
from app.core.client import SignInWish
from app.crypto.tokens import digest, random_token
from app.web import site
from app.web.runtime import runtime

ACCESS_COOKIE = "service_access"
REFRESH_COOKIE = "service_refresh"
CSRF_COOKIE = "service_csrf"
REFRESH_PATH = "/api/v1/auth"
BROWSER_COOKIE = "service_browser"
MAX_BROWSER_ID_LENGTH = 64
DEVICE_COOKIE = "service_device"
DEVICE_SECONDS = 400 * 86_400  # no browser keeps a cookie for longer


def access_cookie() -> str | None:
    """Return the presented access token; "" for an empty cookie, None without one."""
    return request.cookies.get(ACCESS_COOKIE)


def refresh_cookie() -> str | None:
    """Return the presented refresh token; None if there is none or it is empty."""
    return request.cookies.get(REFRESH_COOKIE) or None


def csrf_cookie() -> str | None:
    """Return the presented CSRF token; None if there is none or it is empty."""
    return request.cookies.get(CSRF_COOKIE) or None


def device_cookie() -> str | None:
    """Return what the browser is known by; None if it has nothing of the kind."""
    return request.cookies.get(DEVICE_COOKIE, "")[:MAX_BROWSER_ID_LENGTH] or None


def wish(remember: bool | None = None, *, remember_device: bool = False) -> SignInWish:
    """Return what this request asks of the sign-in that it begins or completes."""
    return SignInWish(device_cookie(), remember, remember_device)


def browser_digest() -> str | None:
    """Return the digest of the browser's id; None if it has none."""
    browser_id = request.cookies.get(BROWSER_COOKIE)
    return digest(browser_id[:MAX_BROWSER_ID_LENGTH]) if browser_id else None


def keep_browser_id(seconds: int) -> str:
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
    """Set the cookies of a token pair, a new CSRF token, and what the browser is known by."""
    access, refresh, device = pair.access_seconds, pair.refresh_seconds, DEVICE_SECONDS
    lives = (None, None, None) if pair.is_short else (access, refresh, device)
    put(response, ACCESS_COOKIE, pair.access_token, lives[0], "/")
    put(response, CSRF_COOKIE, random_token(), lives[1], "/", is_readable=True)
    put(response, REFRESH_COOKIE, pair.refresh_token, lives[1], REFRESH_PATH)
    if pair.device is not None:
        put(response, DEVICE_COOKIE, pair.device, lives[2], REFRESH_PATH)
    return response


def clear(response: Response) -> Response:
    """Remove the three cookies of a session; the browser stays known."""
    put(response, ACCESS_COOKIE, "", 0, "/")
    put(response, CSRF_COOKIE, "", 0, "/", is_readable=True)
    put(response, REFRESH_COOKIE, "", 0, REFRESH_PATH)
    return response


def put(
    response: Response,
    name: str,
    value: str,
    seconds: int | None,
    path: str,
    *,
    is_readable: bool = False,
) -> None:
    """Set a cookie for so many seconds; 0 removes it, None keeps it as long as the window."""
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=path,
        secure=runtime().settings.get(site.COOKIE_SECURE),
        httponly=not is_readable,
        samesite="Lax",
    )
