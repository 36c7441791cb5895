"""What drivers are given and what they return.

A driver uses neither the database nor Redis; its callers have no transaction open.
"""

from dataclasses import dataclass, field

from app.external_auth.kinds import ProviderKind


@dataclass(frozen=True)
class ProviderConfig:
    """One provider as an administrator configured it, with the secret in clear.

    A dedicated kind has fixed URLs, which stored ones override. `tenant` is Microsoft's. The claims
    are those of generic_oauth2; None means the usual name.
    """

    id: int
    key: str
    provider_kind: ProviderKind
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: str = ""
    issuer_url: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    userinfo_url: str | None = None
    tenant: str | None = None
    subject_claim: str | None = None
    username_claim: str | None = None
    display_name_claim: str | None = None
    email_claim: str | None = None
    email_verified_claim: str | None = None


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
    """The result of a provider test."""

    __test__ = False  # or pytest would collect it because of its name

    provider: str
    issuer: str | None
    authorization_endpoint: str | None
    token_endpoint: str | None
    userinfo_endpoint: str | None
    jwks_key_count: int | None
    checks: tuple[Check, ...]
