"""Base driver of the kinds with an ID token: discovery, code flow, claims (spec 03 §7.1)."""

from typing import Any, ClassVar

import jwt

from app.core import tokens
from app.core.clock import Clock
from app.core.fetch_cache import FetchCache
from app.core.http_client import HttpClient
from app.external_auth.drivers import claims, id_token, oauth
from app.external_auth.drivers.discovery import Discovery, Issuer, Metadata
from app.external_auth.drivers.errors import DiscoveryFailed, ProviderRejected
from app.external_auth.drivers.interface import (
    Authorization,
    Callback,
    Check,
    ExternalProfile,
    ProviderConfig,
    TestResult,
)


class OpenIdDriver:
    """Signs in by the authorization code flow of OpenID Connect; a subclass names the issuer."""

    # The signature algorithms to accept, of those that a provider announces.
    algorithms: ClassVar[tuple[str, ...]] = (*id_token.ASYMMETRIC, *id_token.SYMMETRIC)
    # Whether a provider with no scopes configured gets the kind's default scopes.
    has_default_scopes: ClassVar[bool] = True
    # Whether its claim that an email address is verified is trusted.
    trusts_email_verified: ClassVar[bool] = True

    def __init__(self, http_client: HttpClient, cache: FetchCache, clock: Clock) -> None:
        self._http_client = http_client
        self._discovery = Discovery(http_client, cache)
        self._clock = clock

    def issuer(self, provider: ProviderConfig) -> Issuer:
        """Return the issuer to trust.

        Raises: ProviderMisconfigured.
        """
        raise NotImplementedError

    def authorize(self, provider: ProviderConfig, redirect_uri: str) -> Authorization:
        """Prepare a sign-in; fail already here if the provider's keys cannot be fetched.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """
        metadata = self._discovery.metadata(self.issuer(provider))
        self._discovery.keys(metadata)
        return oauth.authorization(
            self._http_client,
            provider,
            url=metadata.authorization_endpoint,
            redirect_uri=redirect_uri,
            scope=self._scope(provider),
            state=tokens.random_nonce(),
            nonce=tokens.random_nonce(),
        )

    def identify(self, provider: ProviderConfig, callback: Callback) -> ExternalProfile:
        """Exchange the code and validate the ID token; user info is never requested.

        Raises: ProviderRejected, DiscoveryFailed, ProviderMisconfigured.
        """
        issuer = self.issuer(provider)
        metadata = self._discovery.metadata(issuer)
        _check_callback(callback, metadata, issuer)
        request = oauth.TokenRequest(_token_endpoint(metadata), basic_auth=True)
        token = oauth.exchange(self._http_client, provider, callback, request).get("id_token")
        if token is None:
            raise ProviderRejected("there is no ID token")
        said = self._claims(provider, metadata, token, callback.nonce)
        vouching = said.get("iss")
        if not isinstance(vouching, str) or not issuer.accepts_token_issuer(
            vouching, metadata.issuer
        ):
            raise ProviderRejected("the ID token is another issuer's")
        return ExternalProfile(
            namespace=claims.namespace(vouching),
            subject=claims.subject(said.get("sub")),
            email=claims.email(said.get("email")),
            email_verified=self.trusts_email_verified and claims.flag(said.get("email_verified")),
            display_name=claims.name(said.get("name")),
            preferred_username=claims.name(said.get("preferred_username")),
        )

    def namespace(self, provider: ProviderConfig) -> str | None:
        """Return the issuer; None for one that stands for many.

        Raises: ProviderMisconfigured.
        """
        issuer = self.issuer(provider)
        return issuer.url if issuer.accepts_token_issuer(issuer.url, issuer.url) else None

    def may_assert(self, provider: ProviderConfig, namespace: str) -> bool:
        """Return whether the namespace is the issuer, or one that it stands for.

        Raises: ProviderMisconfigured.
        """
        issuer = self.issuer(provider)
        return issuer.accepts_document_issuer(namespace) and issuer.accepts_token_issuer(
            namespace, namespace
        )

    def test(self, provider: ProviderConfig) -> TestResult:
        """Fetch the discovery document and the keys.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """
        metadata = self._discovery.metadata(self.issuer(provider))
        token_endpoint = _token_endpoint(metadata)
        count = id_token.readable_keys(self._discovery.keys(metadata).value)
        return TestResult(
            provider=provider.kind.display_name,
            issuer=metadata.issuer,
            authorization_endpoint=metadata.authorization_endpoint,
            token_endpoint=token_endpoint,
            userinfo_endpoint=metadata.userinfo_endpoint,
            jwks_key_count=count,
            checks=(
                Check("discovery", True, "The discovery document is complete."),
                Check("jwks", True, f"Usable keys: {count}."),
            ),
        )

    def _scope(self, provider: ProviderConfig) -> str:
        """Return the scopes, `openid` first, without duplicates."""
        default = provider.kind.default_scopes if self.has_default_scopes else ""
        return " ".join(dict.fromkeys(["openid", *(provider.scopes or default).split()]))

    def _claims(
        self, provider: ProviderConfig, metadata: Metadata, token: str, nonce: str | None
    ) -> dict[str, Any]:
        believed = tuple(name for name in metadata.algorithms if name in self.algorithms)
        header = id_token.header(token, believed)
        key = self._key(provider, metadata, header)
        now = self._clock.now().timestamp()
        return id_token.claims(
            token, header, key, id_token.Expected(provider.client_id, nonce, now)
        )

    def _key(
        self, provider: ProviderConfig, metadata: Metadata, header: id_token.Header
    ) -> jwt.PyJWK | bytes:
        """Return the only key that can have made the signature.

        Raises: ProviderRejected, DiscoveryFailed.
        """
        if header.algorithm in id_token.SYMMETRIC:
            if not provider.client_secret:
                raise ProviderRejected("the ID token is signed with a secret that we do not have")
            return provider.client_secret.encode()
        keys = self._discovery.keys(metadata)
        fitting = id_token.fitting_keys(keys.value, header)
        if not fitting and header.key_id is not None:
            # The provider may have rotated its keys (decision A25).
            keys = self._discovery.newer_keys(metadata, keys)
            fitting = id_token.fitting_keys(keys.value, header)
        if len(fitting) != 1:
            raise ProviderRejected("the ID token's key is unknown, or not the only one that fits")
        return fitting[0]


def _token_endpoint(metadata: Metadata) -> str:
    if metadata.token_endpoint is None:
        raise DiscoveryFailed("token_endpoint is missing")
    return metadata.token_endpoint


def _check_callback(callback: Callback, metadata: Metadata, issuer: Issuer) -> None:
    """Refuse a callback that comes from another provider (RFC 9207; decisions A25, E28)."""
    if callback.issuer is None:
        if metadata.promises_callback_iss:
            raise ProviderRejected("the callback does not name its issuer")
    elif callback.issuer != metadata.issuer and not issuer.accepts_token_issuer(
        callback.issuer, metadata.issuer
    ):
        raise ProviderRejected("the callback names another issuer")
