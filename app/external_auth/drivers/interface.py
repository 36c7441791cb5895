"""The driver interface: what a driver is given, what it returns, and what it can do.

A driver uses neither the database nor Redis; its callers have no transaction open.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class ProviderKind(StrEnum):
    """The kinds of provider, by their names on the wire."""

    OIDC = "oidc"
    GENERIC_OAUTH2 = "generic_oauth2"
    GITHUB = "github"
    QQ = "qq"
    GOOGLE = "google"
    MICROSOFT = "microsoft"

    @property
    def display_name(self) -> str:
        """Return the kind's display name (spec 03 §9.2)."""
        return _DISPLAY_NAMES[self]

    @property
    def default_scopes(self) -> str:
        """Return the scopes to request unless the provider's configuration has its own."""
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
    """The claim that generic_oauth2 reads each value from; None means the usual name."""

    subject: str | None = None
    username: str | None = None
    display_name: str | None = None
    email: str | None = None
    email_verified: str | None = None


@dataclass(frozen=True)
class ProviderConfig:
    """One provider as an administrator configured it.

    A dedicated kind has fixed URLs; stored ones, which no interface can create, override them
    (spec 03 §7.3, Test hook). `tenant` is Microsoft's.
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
    """Where to send the browser, and what to remember until it returns.

    `nonce` is None for kinds without an ID token.
    """

    url: str = field(repr=False)
    state: str = field(repr=False)
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)


@dataclass(frozen=True)
class Callback:
    """What the browser returned with, and what was remembered for it.

    `issuer` is the parameter `iss` (RFC 9207), None if it was missing.
    """

    code: str = field(repr=False)
    redirect_uri: str
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)
    issuer: str | None = None


@dataclass(frozen=True)
class ExternalProfile:
    """A user of a provider: (`namespace`, `subject`) identifies them, the rest describes them."""

    namespace: str
    subject: str
    email: str | None = None
    email_verified: bool = False
    display_name: str | None = None
    preferred_username: str | None = None


@dataclass(frozen=True)
class Check:
    """One check of a provider test, and its result."""

    name: str
    success: bool
    message: str


@dataclass(frozen=True)
class TestResult:
    """The result of a provider test (spec 03 §9.3)."""

    __test__ = False  # or pytest would collect it because of its name

    provider: str
    issuer: str | None
    authorization_endpoint: str | None
    token_endpoint: str | None
    userinfo_endpoint: str | None
    jwks_key_count: int | None
    checks: tuple[Check, ...]


class Driver(Protocol):
    """Talks to the providers of one kind."""

    def authorize(self, provider: ProviderConfig, redirect_uri: str) -> Authorization:
        """Prepare a sign-in.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """

    def identify(self, provider: ProviderConfig, callback: Callback) -> ExternalProfile:
        """Exchange the code, and return the user that it was issued for.

        Raises: ProviderRejected, DiscoveryFailed, ProviderMisconfigured.
        """

    def namespace(self, provider: ProviderConfig) -> str | None:
        """Return the namespace of the provider's subjects; None if it varies by user.

        In a profile it may have a trailing slash. Raises: ProviderMisconfigured.
        """

    def may_assert(self, provider: ProviderConfig, namespace: str) -> bool:
        """Return whether the provider may assert identities of this namespace.

        Raises: ProviderMisconfigured.
        """

    def test(self, provider: ProviderConfig) -> TestResult:
        """Check whether the provider is usable, as far as possible without a sign-in.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """
