"""CORS for the origins that the operator lists.

Listing an origin lets its pages read responses; it does not make it a trusted source of
cookie-authenticated changes, which `public_site_url` alone decides.
"""

import re

from flask import Flask, Response, request

from app.core import setting_kinds
from app.core.errors import BadRequest
from app.core.setting_groups import Group
from app.store.live_settings import LiveSettings
from app.web import cookies, origin, site
from app.web.runtime import runtime

ANY = "*"
METHODS = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
REQUEST_HEADERS = (
    "accept",
    "authorization",
    "content-type",
    "range",
    "x-csrf-token",
    "x-session-user",
)
EXPOSED_HEADERS = "Accept-Ranges, Content-Length, Content-Range, ETag, Retry-After, X-Request-ID"
PREFLIGHT_VARY = "Access-Control-Request-Headers, Access-Control-Request-Method, Origin"

_EXTENSION = re.compile(r"[a-z][a-z0-9.+-]*-extension://[a-z0-9-]+")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class OriginMalformed(BadRequest):
    """The Origin header is no origin."""

    message = "The Origin header is not valid."


class HeaderListMalformed(BadRequest):
    """A preflight asks for something that is no header name."""

    message = "Access-Control-Request-Headers is not valid."


def allowed_origin(entry: str) -> str:
    """Return a list entry in lower case: `*`, an http(s) origin, or a browser extension's.

    Raises: ValueError.
    """
    entry = entry.lower()
    if entry == ANY or _EXTENSION.fullmatch(entry):
        return entry
    return site.normalized_origin(entry)


ENABLED = setting_kinds.boolean(
    Group.CORS,
    "cors_enabled",
    "Whether pages of the origins in cors_allowed_origins may call this service",
    default=False,
)
ALLOWED_ORIGINS = setting_kinds.text_list(
    Group.CORS,
    "cors_allowed_origins",
    "The other origins whose pages may read answers; * alone means any, then without credentials",
    allowed_origin,
    example=("https://app.example",),
    item_kind="origin",
)
ALLOW_CREDENTIALS = setting_kinds.boolean(
    Group.CORS,
    "cors_allow_credentials",
    "Whether browsers send cookies with calls from cors_allowed_origins; not together with *",
    default=False,
)
MAX_AGE_SECONDS = setting_kinds.number(
    Group.CORS,
    "cors_max_age_secs",
    "How long a browser may remember the answer to a preflight",
    3600,
    unit="seconds",
    least=0,
    most=86_400,
)


def install(app: Flask) -> None:
    """Check every cross-origin request before dispatch, and add the headers to its response."""
    app.before_request(_check_origin)
    app.after_request(_add_headers)


def is_consistent(origins: tuple[str, ...], *, credentials: bool) -> bool:
    """Return whether a list may take effect: `*` must stand alone and without credentials."""
    return ANY not in origins or (len(origins) == 1 and not credentials)


def is_refused(settings: LiveSettings) -> bool:
    """Return whether this request would be refused under these settings."""
    listed, caller = _listed(settings), origin.calling_origin()
    return bool(listed) and not _is_own(caller or "") and not {caller, ANY} & set(listed)


def may_read(settings: LiveSettings) -> bool:
    """Return whether the page of another origin that sent this request may read the answer.

    Its cookies, if it sent any, must be allowed as well.
    """
    is_listed = bool({origin.calling_origin(), ANY} & set(_listed(settings)))
    return is_listed and (cookies.access_cookie() is None or settings.get(ALLOW_CREDENTIALS))


def _listed(settings: LiveSettings | None = None) -> tuple[str, ...]:
    """Return the origins in force for this request; none if it has no Origin header."""
    settings = settings or runtime().settings
    if "HTTP_ORIGIN" not in request.environ or not settings.get(ENABLED):
        return ()
    origins: tuple[str, ...] = settings.get(ALLOWED_ORIGINS)
    is_valid = is_consistent(origins, credentials=settings.get(ALLOW_CREDENTIALS))
    return origins if is_valid else ()


def _is_own(caller: str) -> bool:
    """Return whether this is the request's own origin; False if that cannot be determined."""
    try:
        return caller == origin.own_origin()
    except origin.SOURCE_ERRORS:
        return False


def _check_origin() -> Response | None:
    """Answer a refused origin or a preflight; return None to let the request through."""
    if not (listed := _listed()):
        return None
    try:
        caller = allowed_origin(request.headers["Origin"].strip())
    except ValueError:
        raise OriginMalformed from None
    if caller == origin.own_origin():
        return None
    if not {caller, ANY} & set(listed):
        return _refusal()
    is_preflight = "Access-Control-Request-Method" in request.headers
    return _preflight() if request.method == "OPTIONS" and is_preflight else None


def _preflight() -> Response:
    asked = request.headers.get("Access-Control-Request-Headers", "")
    names = [name.strip() for name in asked.split(",") if name.strip()]
    if not all(_HEADER_NAME.fullmatch(name) for name in names):
        raise HeaderListMalformed
    method = request.headers["Access-Control-Request-Method"].strip()
    are_known = all(name.lower() in REQUEST_HEADERS for name in names)
    if method not in METHODS.split(", ") or not are_known:
        return _refusal()
    response = Response(status=204)
    response.headers["Access-Control-Allow-Methods"] = METHODS
    response.headers["Access-Control-Allow-Headers"] = ", ".join(REQUEST_HEADERS)
    response.headers["Access-Control-Max-Age"] = str(runtime().settings.get(MAX_AGE_SECONDS))
    response.headers["Vary"] = PREFLIGHT_VARY
    return response


def _refusal() -> Response:
    return Response(status=403, headers={"Vary": PREFLIGHT_VARY})


def _add_headers(response: Response) -> Response:
    """Let the page read the response if its origin is listed."""
    if "max-age" in response.headers.get("Cache-Control", "") and runtime().settings.get(ENABLED):
        response.vary.add("Origin")  # a cached response is valid for one origin only
    if not (listed := _listed()):
        return response
    caller = request.headers["Origin"].strip().lower().removesuffix("/")
    if (caller not in listed and ANY not in listed) or _is_own(caller):
        return response
    response.headers["Access-Control-Allow-Origin"] = ANY if ANY in listed else caller
    response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
    response.vary.add("Origin")
    if runtime().settings.get(ALLOW_CREDENTIALS):
        response.headers["Access-Control-Allow-Credentials"] = "true"
    return response
