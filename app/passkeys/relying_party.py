"""The WebAuthn relying party: the site that passkeys belong to, and the challenges it has set.

Each challenge accepts one answer, right or wrong, and only for the purpose it was set for.
`begin` and `take` raise RedisError while Redis is unavailable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
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
from app.crypto.tokens import digest, random_uuid
from app.passkeys.errors import FlowInvalid, PublicSiteUrlInvalid, PublicSiteUrlRequired
from app.settings import frontend_keys, keys
from app.store import flow_store
from app.web import site

# The only domain browsers trust over plain http; loopback IP addresses cannot be a relying party.
LOOPBACK = "localhost"
KEY_KINDS = [
    PublicKeyCredentialParameters(type=PublicKeyCredentialType.PUBLIC_KEY, alg=kind.ALGORITHM)
    for kind in (ES256, RS256)
]


class CeremonyPurpose(StrEnum):
    """What a challenge is for."""

    LOGIN = "login"
    REGISTRATION = "registration"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True)
class StartedCeremony:
    """A pending ceremony; `public_key` is what the page passes to `navigator.credentials`."""

    flow_id: str
    public_key: Mapping[str, Any]


def current(rt: Runtime) -> Fido2Server:
    """Return the site as currently configured; its id is the host of its first address.

    Raises: errors.SITE.
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
        PublicKeyCredentialRpEntity(
            id=host, name=rt.settings.get(frontend_keys.BRANDING_TITLE) or host
        ),
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


def begin(
    rt: Runtime, purpose: CeremonyPurpose, data: Mapping[str, Any], options: Mapping[str, Any]
) -> StartedCeremony:
    """Store what a challenge was set for until it is answered."""
    flow_id = random_uuid()
    life = timedelta(seconds=rt.settings.get(keys.PASSKEY_FLOW_TTL_SECONDS))
    flow_store.put_once(rt, _key(purpose, flow_id), data, life)
    return StartedCeremony(flow_id, options)


def take(rt: Runtime, purpose: CeremonyPurpose, flow_id: str) -> Mapping[str, Any]:
    """Consume a flow and return what it was opened with; of concurrent callers, only one gets it.

    Raises: FlowInvalid.
    """
    data = flow_store.take_once(rt, _key(purpose, flow_id.strip()))
    if data is None:
        raise FlowInvalid
    return data


def _key(purpose: CeremonyPurpose, flow_id: str) -> str:
    # A digest, so that nobody can answer a flow with an id read from Redis.
    return f"gatehouse:passkey:{purpose}:{digest(flow_id)}"
