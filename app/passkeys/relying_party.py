"""The WebAuthn relying party: the site that passkeys belong to."""

from urllib.parse import urlsplit

from fido2.cose import ES256, RS256
from fido2.server import Fido2Server
from fido2.webauthn import (
    AttestationConveyancePreference,
    PublicKeyCredentialParameters,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialType,
)

from app.core.runtime import Runtime
from app.core.texts import origin_of
from app.passkeys.errors import PublicSiteUrlInvalid, PublicSiteUrlRequired
from app.settings import keys
from app.web import site

# The only domain browsers trust over plain http; loopback IP addresses cannot be a relying party.
LOOPBACK = "localhost"
KEY_KINDS = [
    PublicKeyCredentialParameters(type=PublicKeyCredentialType.PUBLIC_KEY, alg=kind.ALGORITHM)
    for kind in (ES256, RS256)
]


def current(rt: Runtime) -> Fido2Server:
    """Return the site as currently configured; its id is the host of its first address.

    Raises: PublicSiteUrlRequired, PublicSiteUrlInvalid.
    """
    addresses = rt.settings.get(site.PUBLIC_SITE_URL)
    if not addresses:
        raise PublicSiteUrlRequired
    first = urlsplit(addresses[0])
    host = first.hostname or ""
    if _is_address(host) or (first.scheme != "https" and host != LOOPBACK):
        raise PublicSiteUrlInvalid
    origins = frozenset(map(origin_of, addresses))
    server = Fido2Server(
        PublicKeyCredentialRpEntity(id=host, name=rt.settings.get(keys.BRANDING_TITLE) or host),
        AttestationConveyancePreference.NONE,
        verify_origin=lambda origin: origin in origins,
    )
    server.allowed_algorithms = KEY_KINDS
    timeout = 1000 * rt.settings.get(keys.PASSKEY_FLOW_TTL_SECONDS)
    server.timeout = timeout  # type: ignore[assignment]
    return server


def is_usable(rt: Runtime) -> bool:
    """Return whether passkeys can be used at the site's address."""
    try:
        current(rt)
    except (PublicSiteUrlRequired, PublicSiteUrlInvalid):
        return False
    return True


def _is_address(host: str) -> bool:
    """Return whether browsers parse the host as an IP address, in any notation (WHATWG URL)."""
    last = host.rstrip(".").rpartition(".")[2]
    return ":" in host or last.isdigit() or last.startswith("0x")
