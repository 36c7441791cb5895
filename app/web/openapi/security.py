"""How a caller authenticates, as OpenAPI security schemes (decisions A7 and A9)."""

from collections.abc import Iterator

from app.core.access import PasswordChangeRequired, TokenMissing
from app.core.errors import AppError
from app.web import cookies, origin
from app.web.openapi.examples import JsonSchema
from app.web.operation import Operation

Requirement = dict[str, list[str]]

SCHEMES: dict[str, JsonSchema] = {
    "accessCookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": cookies.ACCESS_COOKIE,
        "description": "The access token as a login sets it: HttpOnly, and sent by the browser "
        "itself. It takes precedence over a bearer token.",
    },
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "The same access token in the Authorization header, for scripts. "
        "Needs no CSRF token.",
    },
    "refreshCookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": cookies.REFRESH_COOKIE,
        "description": f"The refresh token: HttpOnly, and sent only below {cookies.REFRESH_PATH}. "
        "It works once.",
    },
    "csrfToken": {
        "type": "apiKey",
        "in": "header",
        "name": origin.CSRF_HEADER,
        "description": f"The value of the readable cookie `{cookies.CSRF_COOKIE}`, repeated. "
        "Browsers must send it with every unsafe request that a cookie authenticates. A request "
        "with neither Origin nor Referer nor Sec-Fetch-* passes without it, unless the setting "
        "`auth_strict_request_source` is on. A request without the two session cookies, say with a "
        "bearer token, needs none.",
    },
}
BEARER: Requirement = {"bearer": []}
SESSION_SAFE: list[Requirement] = [{"accessCookie": []}, BEARER]
SESSION_UNSAFE: list[Requirement] = [{"accessCookie": [], "csrfToken": []}, BEARER]
REFRESH: Requirement = {"refreshCookie": [], "csrfToken": []}


def requirements(operation: Operation, method: str) -> list[Requirement]:
    """Return the alternative ways to authenticate; an empty list if anyone may call."""
    ways = SESSION_SAFE if method in origin.SAFE_METHODS else SESSION_UNSAFE
    if _is_for_sessions(operation):
        if operation.reads_refresh_cookie:
            return [{**way, "refreshCookie": []} for way in ways]
        return ways
    if operation.reads_refresh_cookie:
        # Refresh fails without the cookie; logout takes any credential, or none.
        return [REFRESH] if TokenMissing in operation.errors else [{}, REFRESH, *ways]
    return []


def refusals(operation: Operation, method: str) -> Iterator[type[AppError]]:
    """Yield an operation's errors, and those of the session guard's checks of unsafe methods."""
    yield from operation.errors
    if _is_for_sessions(operation) and method not in origin.SAFE_METHODS:
        checked = (*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS)
        yield from (error for error in checked if error not in operation.errors)


def access_sentence(operation: Operation) -> str:
    """Return a sentence that says who may call; "" for anonymous access."""
    if not _is_for_sessions(operation):
        return ""
    who = "an administrator" if operation.access == "admin" else "a signed-in account"
    if PasswordChangeRequired in operation.errors:
        return f"For {who}."
    return f"For {who}, also while a password change is due."


def _is_for_sessions(operation: Operation) -> bool:
    return operation.access in {"session", "admin"}
