"""Any OAuth 2 provider with a user info endpoint, configured by hand (spec 03 §7.2)."""

from collections.abc import Mapping
from typing import Any

from app.core.origins import origin_of
from app.external_auth.drivers import claims, json_responses, oauth
from app.external_auth.drivers.errors import ProviderMisconfigured
from app.external_auth.drivers.interface import Check, ExternalProfile, ProviderConfig
from app.external_auth.drivers.plain_oauth import Endpoints, PlainOAuthDriver


class GenericOAuth2Driver(PlainOAuthDriver):
    """Takes all URLs and claim names from the provider's configuration."""

    checks = (
        Check("manual_endpoints", True, "All three endpoints are set."),
        Check("authorization_code", True, "Sign-in uses the authorization code with PKCE."),
    )

    def endpoints(self, provider: ProviderConfig) -> Endpoints:
        """Return the stored endpoints.

        Raises: ProviderMisconfigured.
        """
        urls = provider.authorization_url, provider.token_url, provider.userinfo_url
        present = [url for url in urls if url]
        if len(present) != len(urls):
            raise ProviderMisconfigured("an endpoint is missing")
        return Endpoints(*present)

    def scope(self, provider: ProviderConfig) -> str:
        """Return the stored scopes; no default replaces an empty value."""
        return provider.scopes

    def namespace(self, provider: ProviderConfig) -> str:
        """Return the issuer, which is only a name here, or else the authorization URL's origin.

        Raises: ProviderMisconfigured.
        """
        return provider.issuer_url or origin_of(self.endpoints(provider).authorization)

    def profile(
        self, provider: ProviderConfig, endpoints: Endpoints, access_token: str
    ) -> ExternalProfile:
        """Read the claims by their configured names."""
        answer = json_responses.parse_object(
            self.http_client.get(endpoints.userinfo, headers=oauth.bearer(access_token))
        )
        names = provider.claims
        verified = claims.find(answer, names.email_verified or "email_verified")
        return ExternalProfile(
            namespace=claims.namespace(self.namespace(provider)),
            subject=claims.subject(_subject(answer, names.subject or "sub")),
            email=claims.email(_text(answer, names.email or "email")),
            email_verified=claims.lenient_flag(verified),
            display_name=claims.name(_text(answer, names.display_name or "name")),
            preferred_username=claims.name(_text(answer, names.username or "preferred_username")),
        )


def _subject(answer: Mapping[str, Any], name: str) -> str | None:
    # Use "id" only if "sub" is absent: an unusable "sub" must not turn into another identity.
    has_none = name == "sub" and claims.find(answer, name) is None
    return _text(answer, "id" if has_none else name)


def _text(answer: Mapping[str, Any], name: str) -> str | None:
    return claims.text(claims.find(answer, name))
