"""What the kinds without ID token share: a code for an access token, which opens the user info."""

from dataclasses import astuple, dataclass
from typing import ClassVar

from app.core import tokens
from app.core.origins import origin_of
from app.core.outgoing import Outgoing
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
    """Where a provider is asked."""

    authorization: str
    token: str
    userinfo: str

    def unless_stored(self, provider: ProviderConfig) -> "Endpoints":
        """Return these, but for those that an administrator has named."""
        return Endpoints(
            provider.authorization_url or self.authorization,
            provider.token_url or self.token,
            provider.userinfo_url or self.userinfo,
        )


class PlainOAuthDriver:
    """Signs in by OAuth 2 alone; a subclass knows where to ask, and what the answers mean."""

    # What a test says: nothing is asked, since nothing answers without a user.
    checks: ClassVar[tuple[Check, ...]]

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing

    def endpoints(self, provider: ProviderConfig) -> Endpoints:
        """Return where to ask.

        Raises: ProviderMisconfigured.
        """
        raise NotImplementedError

    def scope(self, provider: ProviderConfig) -> str:
        """Return what to ask for."""
        return provider.scopes or provider.kind.default_scopes

    def token_request(self, endpoints: Endpoints) -> oauth.TokenRequest:
        """Return how the token is asked for."""
        return oauth.TokenRequest(endpoints.token)

    def profile(
        self, provider: ProviderConfig, endpoints: Endpoints, access_token: str
    ) -> ExternalProfile:
        """Ask who it is.

        Raises: ProviderRejected, requests.RequestException.
        """
        raise NotImplementedError

    def namespace(self, provider: ProviderConfig) -> str:
        """Return whose the subjects are.

        Raises: ProviderMisconfigured.
        """
        raise NotImplementedError

    def signs_for(self, provider: ProviderConfig, namespace: str) -> bool:
        """Tell whether the subjects are of this namespace.

        Raises: ProviderMisconfigured.
        """
        return namespace == self.namespace(provider)

    def issuer(self, provider: ProviderConfig) -> str | None:
        """Return what a test shows as the issuer, which is only a name here."""
        return provider.issuer_url

    def authorize(self, provider: ProviderConfig, redirect_uri: str) -> Authorization:
        """Prepare a sign-in.

        Raises: ProviderMisconfigured.
        """
        return oauth.authorization(
            self.outgoing,
            provider,
            url=self._usable_endpoints(provider).authorization,
            redirect_uri=redirect_uri,
            scope=self.scope(provider),
            state=f"oauth2_{tokens.random_hex()}",
        )

    def identify(self, provider: ProviderConfig, callback: Callback) -> ExternalProfile:
        """Exchange the code, once, and ask for the user info.

        Raises: ProviderRejected, ProviderMisconfigured, requests.RequestException.
        """
        endpoints = self._usable_endpoints(provider)
        _check_callback(callback, provider, endpoints)
        token = oauth.exchange(self.outgoing, provider, callback, self.token_request(endpoints))
        return self.profile(provider, endpoints, token["access_token"])

    def test(self, provider: ProviderConfig) -> TestResult:
        """Look whether everything is there.

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
        """Return where to ask, if that is allowed now: an address of this machine may be stored.

        Raises: ProviderMisconfigured.
        """
        endpoints = self.endpoints(provider)
        if not all(map(self.outgoing.allows, astuple(endpoints))):
            raise ProviderMisconfigured("an endpoint is not https")
        return endpoints


def _check_callback(callback: Callback, provider: ProviderConfig, endpoints: Endpoints) -> None:
    """Refuse a callback that names another provider, whose code this one must not get.

    The issuer of these kinds is known only where an administrator named it; else it must be at the
    place the browser was sent to. Source: RFC 9207 §2.4; RFC 9700 §4.4.
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
