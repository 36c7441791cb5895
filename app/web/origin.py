"""CSRF protection of unsafe requests: source check and double-submit token.

Invariant: a request sent by a browser is refused unless a page of this site caused it; a request
without any browser-only header cannot be forged through a browser.
"""

import hmac
from urllib.parse import urlsplit

from flask import request

from app.core.errors import BadRequest, ErrorCode, Forbidden
from app.store.live_settings import LiveSettings
from app.web import cookies, peer, site
from app.web.runtime import runtime

CSRF_HEADER = "X-CSRF-Token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
MAX_SCHEME_LENGTH = 16
MAX_HOST_LENGTH = 512
MAX_FETCH_SITE_LENGTH = 64
MAX_ORIGIN_LENGTH = 2048
MAX_REFERER_AUTHORITY_LENGTH = 528


class RequestSchemeInvalid(BadRequest):
    """The scheme of the request or of its Referer is not a valid one."""

    code = ErrorCode.VALIDATION_REQUEST_SCHEME_INVALID
    message = "The request's scheme is not valid."


class RequestHostInvalid(BadRequest):
    """The request's own host cannot be an origin."""

    code = ErrorCode.VALIDATION_REQUEST_HOST_INVALID
    message = "The request's host is not valid."


class RequestHeaderValueInvalid(BadRequest):
    """Sec-Fetch-Site is longer than any value it can have."""

    code = ErrorCode.VALIDATION_REQUEST_HEADER_VALUE_INVALID
    message = "A request header's value is not valid."


class RequestOriginInvalid(BadRequest):
    """The Origin header is not a bare http(s) origin."""

    code = ErrorCode.VALIDATION_REQUEST_ORIGIN_INVALID
    message = "The Origin header is not valid."


class RequestRefererInvalid(BadRequest):
    """The Referer header names no host."""

    code = ErrorCode.VALIDATION_REQUEST_REFERER_INVALID
    message = "The Referer header is not valid."


class RequestSourceUntrusted(Forbidden):
    """The browser says that another site caused the request."""

    code = ErrorCode.AUTH_REQUEST_SOURCE_UNTRUSTED
    message = "The request was caused by another site."


class RequestOriginUntrusted(Forbidden):
    """The Origin header names another site."""

    code = ErrorCode.AUTH_REQUEST_ORIGIN_UNTRUSTED
    message = "The request's origin is not trusted."


class RequestRefererUntrusted(Forbidden):
    """The Referer header names another site."""

    code = ErrorCode.AUTH_REQUEST_REFERER_UNTRUSTED
    message = "The request's referer is not trusted."


class RequestSourceMissing(Forbidden):
    """Strict mode: the request does not tell what caused it."""

    code = ErrorCode.AUTH_REQUEST_SOURCE_MISSING
    message = "The request does not say where it comes from."


class CsrfCookieMissing(Forbidden):
    """There is no CSRF cookie."""

    code = ErrorCode.AUTH_CSRF_COOKIE_MISSING
    message = "The CSRF cookie is missing."


class CsrfHeaderMissing(Forbidden):
    """There is no CSRF header."""

    code = ErrorCode.AUTH_CSRF_HEADER_MISSING
    message = f"The {CSRF_HEADER} header is missing."


class CsrfTokenInvalid(Forbidden):
    """CSRF cookie and header differ."""

    code = ErrorCode.AUTH_CSRF_TOKEN_INVALID
    message = "The CSRF token is not valid."


SOURCE_ERRORS = (
    RequestSchemeInvalid,
    RequestHostInvalid,
    RequestHeaderValueInvalid,
    RequestOriginInvalid,
    RequestRefererInvalid,
    RequestSourceUntrusted,
    RequestOriginUntrusted,
    RequestRefererUntrusted,
    RequestSourceMissing,
)
CSRF_ERRORS = (CsrfCookieMissing, CsrfHeaderMissing, CsrfTokenInvalid)


def check_source(settings: LiveSettings | None = None, *, may_be_typed: bool = False) -> None:
    """Refuse a request that another site caused; in strict mode, also one that names no source.

    `settings` are those to judge by, None for those in force. With `may_be_typed`, what no page
    caused passes: an address that somebody typed, or a bookmark. Raises: one of SOURCE_ERRORS.
    """
    settings = settings or runtime().settings
    if _is_from_browser():
        _check_browser_source(settings, may_be_typed=may_be_typed)
    elif settings.get(site.STRICT_REQUEST_SOURCE):
        raise RequestSourceMissing


def is_source_trusted() -> bool:
    """Return whether `check_source` passes."""
    try:
        check_source()
    except SOURCE_ERRORS:
        return False
    return True


def check_source_and_token(settings: LiveSettings | None = None) -> None:
    """Run `check_source` and, for a browser or in strict mode, the double-submit check.

    Raises: one of SOURCE_ERRORS or CSRF_ERRORS.
    """
    settings = settings or runtime().settings
    check_source(settings)
    if _is_from_browser() or settings.get(site.STRICT_REQUEST_SOURCE):
        _check_token()


def calling_origin() -> str | None:
    """Return the origin of the page that sent this request; None if no page says that it did."""
    try:
        if origin := _header("Origin"):
            return _origin_of(origin)
        referer = _header("Referer")
        return _origin_of_referer(referer) if referer else None
    except SOURCE_ERRORS:
        return None


def own_origin() -> str:
    """Return `scheme://host` of this request.

    Raises: RequestSchemeInvalid, RequestHostInvalid.
    """
    scheme, host = peer.own_scheme(), peer.own_host()
    if len(scheme) > MAX_SCHEME_LENGTH:
        raise RequestSchemeInvalid
    if len(host) > MAX_HOST_LENGTH or not site.is_authority(host):
        raise RequestHostInvalid
    if scheme not in {"http", "https"}:
        raise RequestHostInvalid
    return f"{scheme}://{host}"


def _is_from_browser() -> bool:
    """Return whether a header is present that only browsers send; a blank one does not count."""
    return any(
        name in {"HTTP_ORIGIN", "HTTP_REFERER"} or name.startswith("HTTP_SEC_FETCH_")
        for name, value in request.environ.items()
        if name.startswith("HTTP_") and value.strip()
    )


def _check_browser_source(settings: LiveSettings, *, may_be_typed: bool) -> None:
    own = own_origin()
    fetch_site = _header("Sec-Fetch-Site")
    if len(fetch_site) > MAX_FETCH_SITE_LENGTH:
        raise RequestHeaderValueInvalid
    fetch_site = fetch_site.lower()
    if fetch_site == "none" and may_be_typed:
        fetch_site = "same-origin"
    if fetch_site in {"cross-site", "none"}:
        raise RequestSourceUntrusted
    if origin := _header("Origin"):
        if not _is_trusted(_origin_of(origin), own, settings):
            raise RequestOriginUntrusted
    elif referer := _header("Referer"):
        if not _is_trusted(_origin_of_referer(referer), own, settings):
            raise RequestRefererUntrusted
    elif fetch_site == "same-site":
        raise RequestSourceUntrusted
    elif fetch_site != "same-origin" and settings.get(site.STRICT_REQUEST_SOURCE):
        raise RequestSourceMissing


def _header(name: str) -> str:
    return request.headers.get(name, "").strip()


def _origin_of(header: str) -> str:
    if len(header) > MAX_ORIGIN_LENGTH:
        raise RequestOriginInvalid
    try:
        return site.normalized_origin(header)
    except ValueError:
        raise RequestOriginInvalid from None


def _origin_of_referer(header: str) -> str:
    scheme, separator, rest = header.partition("://")
    if not separator or len(scheme) > MAX_SCHEME_LENGTH:
        raise RequestSchemeInvalid
    authority = rest.partition("/")[0].partition("?")[0].partition("#")[0].lower()
    if len(authority) > MAX_REFERER_AUTHORITY_LENGTH or not site.is_authority(authority):
        raise RequestRefererInvalid
    try:
        urlsplit(f"//{authority}")
    except ValueError:
        raise RequestRefererInvalid from None
    return f"{scheme.lower()}://{authority}"


def _is_trusted(origin: str, own: str, settings: LiveSettings) -> bool:
    return origin == own or origin in settings.get(site.PUBLIC_SITE_URL)


def _check_token() -> None:
    cookie, header = cookies.csrf_cookie(), _header(CSRF_HEADER)
    if cookie is None:
        raise CsrfCookieMissing
    if not header:
        raise CsrfHeaderMissing
    if not hmac.compare_digest(cookie.encode(), header.encode()):
        raise CsrfTokenInvalid
