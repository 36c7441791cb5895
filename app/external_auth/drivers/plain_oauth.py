"""Base driver of the kinds without an ID token: code, then access token, then user info."""

from dataclasses import astuple, dataclass
from typing import ClassVar

from app.core import tokens
from app.core.http_client import HttpClient
from app.core.origins import origin_of
from app.external_auth.drivers import oauth
from app.external_auth.drivers.errors import ProviderMisconfigured, ProviderRejected
from app.external_auth.drivers.interface import (
    Authorization,
    Callback,
    Check,
    ExternalProfile,
    ProviderConfig,
    TestResult,
)


@dataclass(frozen=True)
class Endpoints:
    """The URLs of a provider's endpoints."""

    authorization: str
    token: str
    userinfo: str

    def overridden_by(self, provider: ProviderConfig) -> "Endpoints":
        """Return these, each overridden by the provider's stored one, if any."""
        return Endpoints(
            provider.authorization_url or self.authorization,
            provider.token_url or self.token,
            provider.userinfo_url or self.userinfo,
        )


class PlainOAuthDriver:
    """Signs in by OAuth 2 alone; a subclass knows the endpoints and interprets the responses."""

    # The results of a test, which are constant: no endpoint can be tested without a user.
    checks: ClassVar[tuple[Check, ...]]

    def __init__(self, http_client: HttpClient) -> None:
        self.http_client = http_client

    def endpoints(self, provider: ProviderConfig) -> Endpoints:
        """Return the provider's endpoints.

        Raises: ProviderMisconfigured.
        """
        raise NotImplementedError

    def scope(self, provider: ProviderConfig) -> str:
        """Return the scopes to request."""
        return provider.scopes or provider.kind.default_scopes

    def token_request(self, endpoints: Endpoints) -> oauth.TokenRequest:
        """Return how to request the token."""
        return oauth.TokenRequest(endpoints.token)

    def profile(
        self, provider: ProviderConfig, endpoints: Endpoints, access_token: str
    ) -> ExternalProfile:
        """Fetch the profile of the user behind an access token.

        Raises: ProviderRejected, requests.RequestException.
        """
        raise NotImplementedError

    def namespace(self, provider: ProviderConfig) -> str:
        """Return the namespace of the subjects.

        Raises: ProviderMisconfigured.
        """
        raise NotImplementedError

    def may_assert(self, provider: ProviderConfig, namespace: str) -> bool:
        """Return whether the subjects belong to this namespace.

        Raises: ProviderMisconfigured.
        """
        return namespace == self.namespace(provider)

    def issuer(self, provider: ProviderConfig) -> str | None:
        """Return the issuer that a test shows, which is only a name here."""
        return provider.issuer_url

    def authorize(self, provider: ProviderConfig, redirect_uri: str) -> Authorization:
        """Prepare a sign-in.

        Raises: ProviderMisconfigured.
        """
        return oauth.authorization(
            self.http_client,
            provider,
            url=self._usable_endpoints(provider).authorization,
            redirect_uri=redirect_uri,
            scope=self.scope(provider),
            state=f"oauth2_{tokens.random_hex()}",
        )

    def identify(self, provider: ProviderConfig, callback: Callback) -> ExternalProfile:
        """Exchange the code, once, and request the user info.

        Raises: ProviderRejected, ProviderMisconfigured, requests.RequestException.
        """
        endpoints = self._usable_endpoints(provider)
        _check_callback(callback, provider, endpoints)
        token = oauth.exchange(self.http_client, provider, callback, self.token_request(endpoints))
        return self.profile(provider, endpoints, token["access_token"])

    def test(self, provider: ProviderConfig) -> TestResult:
        """Check that the configuration is complete.

        Raises: ProviderMisconfigured.
        """
        endpoints = self._usable_endpoints(provider)
        return TestResult(
            provider=provider.kind.display_name,
            issuer=self.issuer(provider),
            authorization_endpoint=endpoints.authorization,
            token_endpoint=endpoints.token,
            userinfo_endpoint=endpoints.userinfo,
            jwks_key_count=None,
            checks=self.checks,
        )

    def _usable_endpoints(self, provider: ProviderConfig) -> Endpoints:
        """Return the endpoints if they may be requested: stored loopback URLs may be off limits.

        Raises: ProviderMisconfigured.
        """
        endpoints = self.endpoints(provider)
        if not all(map(self.http_client.allows, astuple(endpoints))):
            raise ProviderMisconfigured("an endpoint is not https")
        return endpoints


def _check_callback(callback: Callback, provider: ProviderConfig, endpoints: Endpoints) -> None:
    """Refuse a callback that names another provider, whose code this one must not receive.

    These kinds have a known issuer only if an administrator configured one; otherwise the named one
    must have the origin that the browser was sent to. Source: RFC 9207 §2.4; RFC 9700 §4.4.
    """
    named = callback.issuer
    if named is None:
        return
    try:
        is_ours = (
            named.removesuffix("/") == provider.issuer_url
            if provider.issuer_url
            else origin_of(named) == origin_of(endpoints.authorization)
        )
    except ValueError:
        is_ours = False
    if not is_ours:
        raise ProviderRejected("the callback names another issuer")
