"""Where a request really comes from, and to which address it was sent.

Invariant: forwarding headers count only if the direct peer is a trusted proxy.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

from flask import request

from app.core.addresses import Address, parse_and_unmap
from app.core.client import Client
from app.core.config import Network
from app.web.runtime import runtime

# Where a request keeps which access token it was accepted with.
TOKEN_ID = "gatehouse.token_id"
TAKEN_AT = "gatehouse.taken_at"
MAX_REQUEST_AGE_SECONDS = 60.0


def client() -> Client:
    """Return the caller's address and user agent, and which access token it has, if any."""
    agent = _utf8(request.environ.get("HTTP_USER_AGENT", ""))
    return Client.of(client_address(), agent, request.environ.get(TOKEN_ID))


def client_address() -> str | None:
    """Return the right-most hop that is no trusted proxy, else the direct peer."""
    peer = _address(request.environ.get("REMOTE_ADDR") or "")
    for hop in map(_address, _forwarded_hops() if is_proxied() else ()):
        if hop is None:
            break
        if not _is_trusted(hop):
            return str(hop)
    return None if peer is None else str(peer)


def is_proxied() -> bool:
    """Return whether the direct peer is a trusted proxy; a unix socket counts as loopback."""
    return _is_trusted(_address(request.environ.get("REMOTE_ADDR") or "127.0.0.1"))


def own_scheme() -> str:
    """Return the scheme the caller used; not validated, so it may be any text."""
    forwarded = _forwarded("HTTP_X_FORWARDED_PROTO", "proto") if is_proxied() else None
    return (forwarded or request.environ["wsgi.url_scheme"]).lower()


def own_host() -> str:
    """Return the host and port the caller used; not validated, so it may be any text."""
    forwarded = _forwarded("HTTP_X_FORWARDED_HOST", "host") if is_proxied() else None
    host = forwarded or request.environ.get("HTTP_HOST")
    if not host:
        host = f"{request.environ['SERVER_NAME']}:{request.environ['SERVER_PORT']}"
    return host.strip().lower()


def arrived_at() -> datetime:
    """Return when the request reached the service.

    That is what a trusted proxy reports, else when a worker took it.
    """
    taken_at: datetime = request.environ[TAKEN_AT]
    header = request.environ.get("HTTP_X_REQUEST_START", "") if is_proxied() else ""
    try:
        forwarded = datetime.fromtimestamp(float(header.removeprefix("t=")), UTC)
    except (ValueError, OverflowError, OSError):
        return taken_at
    # A proxy's clock may be wrong; what it claims is believed only within bounds.
    age = (taken_at - forwarded).total_seconds()
    return forwarded if 0 <= age <= MAX_REQUEST_AGE_SECONDS else taken_at


def is_within(networks: tuple[Network, ...]) -> bool:
    """Return whether the client's address is in one of these networks."""
    address = _address(client_address() or "")
    return address is not None and any(address in network for network in networks)


def _forwarded(header: str, directive: str) -> str | None:
    """Return what the nearest proxy reported, in `header` or else in Forwarded (RFC 7239)."""
    value = request.environ.get(header)
    if value:
        last: str = value.rpartition(",")[2].strip()
        return last
    return next(_rfc7239(directive), None)


def _forwarded_hops() -> Iterator[str]:
    """Yield the forwarded hops, nearest first."""
    header = request.environ.get("HTTP_X_FORWARDED_FOR")
    if header:
        return (hop.strip() for hop in reversed(header.split(",")))
    return _rfc7239("for")


def _rfc7239(directive: str) -> Iterator[str]:
    for element in reversed(request.environ.get("HTTP_FORWARDED", "").split(",")):
        for pair in element.split(";"):
            name, _, value = pair.strip().partition("=")
            if name.lower() == directive and value:
                yield value.strip('"')


@lru_cache(maxsize=1024)
def _address(hop: str) -> Address | None:
    """Return the address of `1.2.3.4`, `1.2.3.4:80`, `::1` or `[::1]:80`; None for others."""
    bare = hop
    if hop.startswith("["):
        bare = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        bare = hop.partition(":")[0]
    try:
        return parse_and_unmap(bare)
    except ValueError:
        return None


def _is_trusted(address: Address | None) -> bool:
    networks = runtime().config.trusted_proxies
    return address is not None and any(address in network for network in networks)


def _utf8(header: str) -> str:
    """Decode a header as UTF-8 if it is valid; WSGI passes its bytes on as Latin-1."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header
