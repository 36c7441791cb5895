"""What a driver is given, what it returns, and what it can do.

A driver touches neither the database nor Redis; its callers hold no transaction open.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class ProviderKind(StrEnum):
    """The kinds of provider, as they are on the wire."""

    OIDC = "oidc"
    GENERIC_OAUTH2 = "generic_oauth2"
    GITHUB = "github"
    QQ = "qq"
    GOOGLE = "google"
    MICROSOFT = "microsoft"

    @property
    def display_name(self) -> str:
        """Return what people call this kind (spec 03 §9.2)."""
        return _DISPLAY_NAMES[self]

    @property
    def default_scopes(self) -> str:
        """Return what is asked for unless the provider says otherwise."""
        return _DEFAULT_SCOPES[self]


_OPENID = "openid profile email"

_DISPLAY_NAMES = {
    ProviderKind.OIDC: "OpenID Connect",
    ProviderKind.GENERIC_OAUTH2: "Generic OAuth2",
    ProviderKind.GITHUB: "GitHub",
    ProviderKind.QQ: "QQ",
    ProviderKind.GOOGLE: "Google",
    ProviderKind.MICROSOFT: "Microsoft",
}

_DEFAULT_SCOPES = {
    ProviderKind.OIDC: _OPENID,
    ProviderKind.GENERIC_OAUTH2: _OPENID,
    ProviderKind.GITHUB: "read:user user:email",
    ProviderKind.QQ: "get_user_info",
    ProviderKind.GOOGLE: _OPENID,
    ProviderKind.MICROSOFT: _OPENID,
}


@dataclass(frozen=True)
class ClaimNames:
    """Where generic_oauth2 finds each value of its user info; None means the usual name."""

    subject: str | None = None
    username: str | None = None
    display_name: str | None = None
    email: str | None = None
    email_verified: str | None = None


@dataclass(frozen=True)
class ProviderConfig:
    """One provider as an administrator described it.

    A dedicated kind has fixed addresses; one that is stored nevertheless wins (spec 03 §7.3, Test
    hook), which no interface can bring about. `tenant` is Microsoft's.
    """

    id: int
    key: str
    kind: ProviderKind
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: str = ""
    issuer_url: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    userinfo_url: str | None = None
    tenant: str | None = None
    claims: ClaimNames = ClaimNames()


@dataclass(frozen=True)
class Authorization:
    """Where to send the browser, and what to remember until it comes back.

    `nonce` is None for kinds without ID token.
    """

    url: str = field(repr=False)
    state: str = field(repr=False)
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)


@dataclass(frozen=True)
class Callback:
    """What the browser came back with, and what was remembered.

    `issuer` is the parameter `iss` (RFC 9207), None when there was none.
    """

    code: str = field(repr=False)
    redirect_uri: str
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)
    issuer: str | None = None


@dataclass(frozen=True)
class ExternalProfile:
    """Who somebody is: (`namespace`, `subject`) names them, the rest describes them."""

    namespace: str
    subject: str
    email: str | None = None
    email_verified: bool = False
    display_name: str | None = None
    preferred_username: str | None = None


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, and what was found."""

    name: str
    success: bool
    message: str


@dataclass(frozen=True)
class TestResult:
    """What a test of a provider found (spec 03 §9.3)."""

    __test__ = False  # pytest takes the name for one of its own

    provider: str
    issuer: str | None
    authorization_endpoint: str | None
    token_endpoint: str | None
    userinfo_endpoint: str | None
    jwks_key_count: int | None
    checks: tuple[Check, ...]


class Driver(Protocol):
    """Speaks to the providers of one kind."""

    def authorize(self, provider: ProviderConfig, redirect_uri: str) -> Authorization:
        """Prepare a sign-in.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """

    def identify(self, provider: ProviderConfig, callback: Callback) -> ExternalProfile:
        """Exchange the code, and return whom it stands for.

        Raises: ProviderRejected, DiscoveryFailed, ProviderMisconfigured.
        """

    def namespace(self, provider: ProviderConfig) -> str | None:
        """Return whose subjects the provider's people are; None where each has their own.

        A slash may follow it in a profile. Raises: ProviderMisconfigured.
        """

    def signs_for(self, provider: ProviderConfig, namespace: str) -> bool:
        """Tell whether the provider may assert whose identity is of this namespace.

        Raises: ProviderMisconfigured.
        """

    def test(self, provider: ProviderConfig) -> TestResult:
        """Look whether the provider can be used, as far as that shows without anybody signing in.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """
