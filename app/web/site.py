"""The public addresses of this service (`public_site_url`)."""

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode, urlsplit

from flask import Response

from app.core import setting_kinds
from app.core.runtime import Runtime
from app.core.setting_groups import Group

MAX_SITE_ORIGIN_LENGTH = 512
LOGIN_PAGE = "/login"

_HOST = re.compile(r"[a-z0-9._-]+")


def normalized_origin(text: str) -> str:
    """Return `scheme://host[:port]` in lower case.

    Raises: ValueError unless it is a bare http(s) origin.
    """
    origin = text.strip().lower()
    parts = urlsplit(origin)
    bare = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in {"http", "https"} or origin not in {bare, f"{bare}/"}:
        raise ValueError("must be an http or https origin without path, such as https://a.example")
    if not is_authority(parts.netloc):
        raise ValueError("must name a host and at most a port")
    return bare


def site_origin(text: str) -> str:
    """Return a normalized origin that may be an address of this site.

    Raises: ValueError.
    """
    if len(text) > MAX_SITE_ORIGIN_LENGTH:
        raise ValueError(f"must be at most {MAX_SITE_ORIGIN_LENGTH} characters long")
    return normalized_origin(text)


def is_authority(authority: str) -> bool:
    """Return whether a lower-case text is `host` or `host:port`."""
    host, separator, port = authority.rpartition(":")
    if not separator or authority.endswith("]"):
        host, port = authority, "1"
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536):
        return False
    if not host.startswith("["):
        return _HOST.fullmatch(host) is not None
    try:
        ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        return False
    return True


def storable_origin(origin: str) -> str:
    """Return the origin to store at set-up, with loopback as localhost.

    A passkey's relying party id must be a domain, not an IP address.
    """
    parts = urlsplit(normalized_origin(origin))
    try:
        is_loopback = ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        return f"{parts.scheme}://{parts.netloc}"
    return f"{parts.scheme}://localhost" + (f":{parts.port}" if parts.port else "")


PUBLIC_SITE_URL = setting_kinds.text_list(
    Group.SITE,
    "public_site_url",
    "The origins at which this site is reached, in order; links and passkeys use the first one",
    site_origin,
    example=("https://files.example",),
    item_kind="origin",
    in_order=True,
    is_public=True,
)
STRICT_REQUEST_SOURCE = setting_kinds.boolean(
    Group.REQUEST_SOURCES,
    "auth_strict_request_source",
    "Whether requests that change something must name their source, even from scripts",
    default=False,
)
COOKIE_SECURE = setting_kinds.boolean(
    Group.SIGN_IN,
    "auth_cookie_secure",
    "Whether browsers send the cookies over https only",
    default=True,
)


def link(rt: Runtime, path: str) -> str:
    """Return the URL of a path of the site; only the path while the site's own is unknown."""
    origins = rt.settings.get(PUBLIC_SITE_URL)
    return f"{origins[0]}{path}" if origins else path


def to_page(rt: Runtime, path: str, query: Mapping[str, str]) -> Response:
    """Redirect a browser to a page of the frontend; `query` is added to what the path has."""
    if query:
        page, hash_sign, fragment = path.partition("#")
        joint = "&" if "?" in page else "?"
        added = urlencode(query, quote_via=quote, safe="")
        path = f"{page}{joint}{added}{hash_sign}{fragment}"
    response = Response(status=302, headers={"Location": link(rt, path)})
    # The page must not learn the token in this request's URL from the Referer.
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
