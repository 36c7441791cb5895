"""The kinds of provider, and what can be configured for each (spec 03 §1, §7.3, §9.2)."""

from dataclasses import dataclass
from enum import StrEnum

from app.external_auth.drivers.interface import ProviderKind
from app.external_auth.errors import KindUnknown

ALIASES = {"oauth2": ProviderKind.GENERIC_OAUTH2}


class Protocol(StrEnum):
    """The protocol a provider speaks."""

    OIDC = "oidc"
    OAUTH2 = "oauth2"


@dataclass(frozen=True)
class Traits:
    """The properties shared by all providers of a kind.

    `default_name` is the display name to suggest, "" if only the operator can know one.
    `requires_verified_email_by_default` is the default of `require_email_verified`.
    `reports_only_verified_emails` means that a missing email address counts as unverified.
    A dedicated kind has fixed URLs, so it takes neither an issuer nor endpoints.
    """

    protocol: Protocol
    description: str
    default_name: str = ""
    requires_verified_email_by_default: bool = True
    supports_issuer: bool = False
    requires_issuer: bool = False
    supports_manual_endpoints: bool = False
    has_discovery: bool = False
    reports_email_verified: bool = False
    reports_only_verified_emails: bool = False
    has_tenant: bool = False

    @property
    def is_dedicated(self) -> bool:
        """Return whether the kind is for one particular service with fixed URLs."""
        return not self.supports_issuer


TRAITS: dict[ProviderKind, Traits] = {
    ProviderKind.GENERIC_OAUTH2: Traits(
        Protocol.OAUTH2,
        "Any OAuth 2 provider: endpoints by hand, PKCE, claims of its user info.",
        supports_issuer=True,
        supports_manual_endpoints=True,
        reports_email_verified=True,
    ),
    ProviderKind.GITHUB: Traits(
        Protocol.OAUTH2,
        "GitHub; the address is the account's verified primary one.",
        default_name="GitHub",
        reports_only_verified_emails=True,
    ),
    ProviderKind.GOOGLE: Traits(
        Protocol.OIDC,
        "Google accounts, by OpenID Connect.",
        default_name="Google",
        has_discovery=True,
        reports_email_verified=True,
    ),
    ProviderKind.MICROSOFT: Traits(
        Protocol.OIDC,
        "Microsoft accounts of one tenant or of several, by OpenID Connect.",
        default_name="Microsoft",
        requires_verified_email_by_default=False,
        has_discovery=True,
        has_tenant=True,
    ),
    ProviderKind.OIDC: Traits(
        Protocol.OIDC,
        "Any OpenID Connect provider: discovery, PKCE, nonce and ID token.",
        supports_issuer=True,
        requires_issuer=True,
        has_discovery=True,
        reports_email_verified=True,
    ),
    ProviderKind.QQ: Traits(
        Protocol.OAUTH2,
        "QQ Connect; it tells no address.",
        default_name="QQ",
        requires_verified_email_by_default=False,
    ),
}


def named(text: str) -> ProviderKind:
    """Return the kind with this wire name or alias.

    Raises: KindUnknown.
    """
    try:
        return ALIASES.get(text) or ProviderKind(text)
    except ValueError:
        raise KindUnknown from None
