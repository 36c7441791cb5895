"""The WebAuthn relying party: the site that passkeys belong to."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from app.core.origins import origin_of
from app.core.runtime import Runtime
from app.passkeys.errors import PublicSiteUrlInvalid, PublicSiteUrlRequired
from app.settings import keys
from app.web import site

# The only domain browsers trust over plain http; loopback IP addresses cannot be a relying party.
LOOPBACK = "localhost"


@dataclass(frozen=True)
class RelyingParty:
    """The site, as browsers and authenticators know it.

    `id` is the host of the first origin, `id_hash` its SHA-256. `origins` are in the form browsers
    send, without default ports.
    """

    id: str
    id_hash: bytes
    origins: frozenset[str]


def current(rt: Runtime) -> RelyingParty:
    """Return the relying party as currently configured.

    Raises: PublicSiteUrlRequired, PublicSiteUrlInvalid.
    """
    return _of(rt.settings.get(site.PUBLIC_SITE_URL))


def is_usable(rt: Runtime) -> bool:
    """Return whether passkeys can be used at the site's address."""
    try:
        current(rt)
    except (PublicSiteUrlRequired, PublicSiteUrlInvalid):
        return False
    return True


def name(rt: Runtime) -> str:
    """Return the name browsers display for the site: its title, or its host if it has none."""
    return rt.settings.get(keys.BRANDING_TITLE) or current(rt).id


@lru_cache(maxsize=8)
def _of(origins: tuple[str, ...]) -> RelyingParty:
    if not origins:
        raise PublicSiteUrlRequired
    first = urlsplit(origins[0])
    host = first.hostname or ""
    if first.scheme != "https" and host != LOOPBACK:
        raise PublicSiteUrlInvalid
    if _is_address(host):
        raise PublicSiteUrlInvalid  # a relying party id must be a domain
    id_hash = hashlib.sha256(host.encode()).digest()
    return RelyingParty(host, id_hash, frozenset(map(origin_of, origins)))


def _is_address(host: str) -> bool:
    """Return whether browsers parse the host as an IP address, in any notation (WHATWG URL)."""
    last = host.rstrip(".").rpartition(".")[2]
    return ":" in host or last.isdigit() or last.startswith("0x")
