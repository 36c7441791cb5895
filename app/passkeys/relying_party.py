"""Which site passkeys belong to: the relying party of WebAuthn (spec 02 §2.1; decision A12)."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from app.core.origins import origin_of
from app.core.runtime import Runtime
from app.passkeys.errors import PublicSiteUrlInvalid, PublicSiteUrlRequired
from app.settings import keys
from app.web import site

# The one host browsers take plain http from for secure, besides addresses, which are no domains.
LOOPBACK = "localhost"


@dataclass(frozen=True)
class RelyingParty:
    """The site, as browsers and authenticators know it.

    `id` is the host of the first origin, `id_hash` its SHA-256. `origins` are spelled as browsers
    do, without default ports.
    """

    id: str
    id_hash: bytes
    origins: frozenset[str]


def current(rt: Runtime) -> RelyingParty:
    """Return the relying party as it is set now.

    Raises: PublicSiteUrlRequired, PublicSiteUrlInvalid.
    """
    return _of(rt.settings.get(site.PUBLIC_SITE_URL))


def is_usable(rt: Runtime) -> bool:
    """Tell whether passkeys can be used at the site's address."""
    try:
        current(rt)
    except (PublicSiteUrlRequired, PublicSiteUrlInvalid):
        return False
    return True


def name(rt: Runtime) -> str:
    """Return what a browser calls the site: its title, or its host while it has none."""
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
    """Tell whether browsers read a host as an IP address, in whichever notation (WHATWG URL)."""
    last = host.rstrip(".").rpartition(".")[2]
    return ":" in host or last.isdigit() or last.startswith("0x")
