"""The kinds of provider, and what can be configured for each."""

from dataclasses import dataclass
from enum import StrEnum

OPENID_SCOPES = "openid profile email"


class Protocol(StrEnum):
    """The protocol a provider speaks."""

    OIDC = "oidc"
    OAUTH2 = "oauth2"


class ProviderKind(StrEnum):
    """The kinds of provider, by their names on the wire."""

    OIDC = "oidc"
    GENERIC_OAUTH2 = "generic_oauth2"
    GITHUB = "github"
    QQ = "qq"
    GOOGLE = "google"
    MICROSOFT = "microsoft"

    @property
    def traits(self) -> "Traits":
        """The properties shared by all providers of the kind."""
        return _TRAITS[self]

    @property
    def has_manual_endpoints(self) -> bool:
        """Whether the operator enters all endpoints."""
        return self is ProviderKind.GENERIC_OAUTH2

    @property
    def is_dedicated(self) -> bool:
        """Whether it is for one particular service, so that no URL can be configured."""
        return self not in (ProviderKind.OIDC, ProviderKind.GENERIC_OAUTH2)


@dataclass(frozen=True)
class Traits:
    """The properties shared by all providers of a kind.

    `default_name` is the display name to suggest, "" if only the operator can know one.
    `requires_verified_email` is the default of a provider's `require_email_verified`;
    `tells_verified` says whether the provider tells which addresses it has verified.
    """

    protocol: Protocol
    display_name: str
    description: str
    default_name: str = ""
    default_scopes: str = OPENID_SCOPES
    requires_verified_email: bool = True
    tells_verified: bool = True


_TRAITS = {
    ProviderKind.GENERIC_OAUTH2: Traits(
        Protocol.OAUTH2,
        "Generic OAuth2",
        "Any OAuth 2 provider: endpoints by hand, PKCE, claims of its user info.",
    ),
    ProviderKind.GITHUB: Traits(
        Protocol.OAUTH2,
        "GitHub",
        "GitHub; the address is the account's verified primary one.",
        default_name="GitHub",
        default_scopes="read:user user:email",
        tells_verified=False,
    ),
    ProviderKind.GOOGLE: Traits(
        Protocol.OIDC,
        "Google",
        "Google accounts, by OpenID Connect.",
        default_name="Google",
    ),
    ProviderKind.MICROSOFT: Traits(
        Protocol.OIDC,
        "Microsoft",
        "Microsoft accounts of one tenant or of several, by OpenID Connect.",
        default_name="Microsoft",
        requires_verified_email=False,
        tells_verified=False,
    ),
    ProviderKind.OIDC: Traits(
        Protocol.OIDC,
        "OpenID Connect",
        "Any OpenID Connect provider: discovery, PKCE, nonce and ID token.",
    ),
    ProviderKind.QQ: Traits(
        Protocol.OAUTH2,
        "QQ",
        "QQ Connect; it tells no address.",
        default_name="QQ",
        default_scopes="get_user_info",
        requires_verified_email=False,
        tells_verified=False,
    ),
}
ALIASES = {"oauth2": ProviderKind.GENERIC_OAUTH2}
