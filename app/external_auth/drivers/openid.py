"""The driver of the kinds with an ID token: discovery, code flow, claims."""

from typing import Any

import jwt

from app.core import tokens
from app.core.clock import Clock
from app.core.fetch_cache import FetchCache
from app.core.http_client import HttpClient
from app.external_auth.drivers import claims, id_token
from app.external_auth.drivers.discovery import Discovery, Metadata
from app.external_auth.drivers.driver import Driver, reported
from app.external_auth.drivers.interface import (
    Authorization,
    Callback,
    Check,
    ExternalProfile,
    ProviderConfig,
    TestResult,
)
from app.external_auth.drivers.issuers import Issuer, issuer_of
from app.external_auth.errors import DiscoveryFailed, ProviderRejected
from app.external_auth.kinds import ProviderKind


class OpenIdDriver(Driver):
    """Signs in by the authorization code flow of OpenID Connect."""

    def __init__(
        self, provider: ProviderConfig, http_client: HttpClient, cache: FetchCache, clock: Clock
    ) -> None:
        super().__init__(provider, http_client)
        self._discovery = Discovery(http_client, cache)
        self._clock = clock
        self._is_microsoft = provider.provider_kind is ProviderKind.MICROSOFT

    @property
    def issuer(self) -> Issuer:
        """The issuer to trust.

        Raises: ProviderMisconfigured.
        """
        return issuer_of(self.provider)

    @reported
    def authorize(self, redirect_uri: str) -> Authorization:
        """Prepare a sign-in; fail already here if the provider's keys cannot be fetched."""
        metadata = self._discovery.metadata(self.issuer)
        self._discovery.keys(metadata)
        return self._authorization(
            metadata.authorization_endpoint,
            redirect_uri,
            scope=self._scope(),
            state=tokens.random_nonce(),
            nonce=tokens.random_nonce(),
        )

    @reported
    def identify(self, callback: Callback) -> ExternalProfile:
        """Exchange the code and validate the ID token; user info is never requested."""
        issuer = self.issuer
        metadata = self._discovery.metadata(issuer)
        _check_callback(callback, metadata, issuer)
        endpoint = _token_endpoint(metadata)
        token = self._exchange(callback, endpoint, basic_auth=True).get("id_token")
        if token is None:
            raise ProviderRejected("there is no ID token")
        said = self._claims(metadata, token, callback.nonce)
        vouching = said.get("iss")
        if not isinstance(vouching, str) or not issuer.accepts_token_issuer(
            vouching, metadata.issuer
        ):
            raise ProviderRejected("the ID token is another issuer's")
        return ExternalProfile(
            namespace=claims.namespace(vouching),
            subject=claims.subject(said.get("sub")),
            email=claims.email(said.get("email")),
            # A Microsoft tenant's administrator can give an account any email address.
            email_verified=not self._is_microsoft and claims.flag(said.get("email_verified")),
            display_name=claims.name(said.get("name")),
            preferred_username=claims.name(said.get("preferred_username")),
        )

    @reported
    def namespace(self) -> str | None:
        """Return the issuer; None for one that stands for many."""
        issuer = self.issuer
        return issuer.url if issuer.accepts_token_issuer(issuer.url, issuer.url) else None

    @reported
    def may_assert(self, namespace: str) -> bool:
        """Return whether the namespace is the issuer, or one that it stands for."""
        issuer = self.issuer
        return issuer.accepts_document_issuer(namespace) and issuer.accepts_token_issuer(
            namespace, namespace
        )

    def test(self) -> TestResult:
        """Fetch the discovery document and the keys."""
        metadata = self._discovery.metadata(self.issuer)
        token_endpoint = _token_endpoint(metadata)
        count = id_token.readable_keys(self._discovery.keys(metadata))
        return TestResult(
            provider=self.provider.provider_kind.traits.display_name,
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

    def _scope(self) -> str:
        """Return the scopes, `openid` first, without duplicates."""
        kind = self.provider.provider_kind
        default = kind.traits.default_scopes if kind.is_dedicated else ""
        return " ".join(dict.fromkeys(["openid", *(self.provider.scopes or default).split()]))

    def _claims(self, metadata: Metadata, token: str, nonce: str | None) -> dict[str, Any]:
        supported = ("RS256",) if self._is_microsoft else id_token.ALGORITHMS
        believed = tuple(name for name in metadata.algorithms if name in supported)
        header = id_token.header(token, believed)
        key, now = self._key(metadata, header), self._clock.now().timestamp()
        return id_token.claims(
            token, header, key, client_id=self.provider.client_id, nonce=nonce, now=now
        )

    def _key(self, metadata: Metadata, header: id_token.Header) -> jwt.PyJWK | bytes:
        """Return the only key that can have made the signature.

        Raises: ProviderRejected, DiscoveryFailed.
        """
        if header.algorithm in id_token.SYMMETRIC:
            if not self.provider.client_secret:
                raise ProviderRejected("the ID token is signed with a secret that we do not have")
            return self.provider.client_secret.encode()
        keys = self._discovery.keys(metadata)
        fitting = id_token.fitting_keys(keys, header)
        if not fitting and header.key_id is not None:
            # The provider may have rotated its keys.
            keys = self._discovery.keys(metadata, other_than=keys)
            fitting = id_token.fitting_keys(keys, header)
        if len(fitting) != 1:
            raise ProviderRejected("the ID token's key is unknown, or not the only one that fits")
        return fitting[0]


def _token_endpoint(metadata: Metadata) -> str:
    if metadata.token_endpoint is None:
        raise DiscoveryFailed("token_endpoint is missing")
    return metadata.token_endpoint


def _check_callback(callback: Callback, metadata: Metadata, issuer: Issuer) -> None:
    """Refuse a callback that comes from another provider (RFC 9207)."""
    if callback.issuer is None:
        if metadata.promises_callback_iss:
            raise ProviderRejected("the callback does not name its issuer")
    elif callback.issuer != metadata.issuer and not issuer.accepts_token_issuer(
        callback.issuer, metadata.issuer
    ):
        raise ProviderRejected("the callback names another issuer")
