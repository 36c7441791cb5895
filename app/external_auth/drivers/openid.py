"""The driver of the kinds with an ID token: discovery (OpenID Connect Discovery 1.0), code, claims.

Documents and key sets are cached for a while, once they are valid.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import jwt
import requests

from app.core import tokens
from app.core.clock import Clock
from app.core.http_client import FetchCache, HttpClient
from app.external_auth.drivers import claims, id_token
from app.external_auth.drivers.driver import (
    Authorization,
    Callback,
    Check,
    Driver,
    ExternalProfile,
    ProviderConfig,
    TestResult,
    json_object,
    reported,
    transport_reason,
)
from app.external_auth.drivers.issuers import Issuer, issuer_of
from app.external_auth.errors import DiscoveryFailed, ProviderRejected
from app.external_auth.models import ProviderKind

PATH = "/.well-known/openid-configuration"

T = TypeVar("T")
Document = Mapping[str, Any]
KeySet = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Metadata:
    """The part of a discovery document that a sign-in needs.

    `token_endpoint` may be missing until a code is exchanged. With `promises_callback_iss`
    every callback names the issuer (RFC 9207).
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str | None
    userinfo_endpoint: str | None
    jwks_uri: str
    algorithms: tuple[str, ...]
    promises_callback_iss: bool


class OpenIdDriver(Driver):
    """Signs in by the authorization code flow of OpenID Connect."""

    def __init__(
        self, provider: ProviderConfig, http_client: HttpClient, cache: FetchCache, clock: Clock
    ) -> None:
        super().__init__(provider, http_client)
        self._cache = cache
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
        metadata = self._metadata(self.issuer)
        self._keys(metadata.jwks_uri)
        default = "" if self.provider.provider_kind is ProviderKind.OIDC else "profile email"
        scopes = ["openid", *(self.provider.scopes or default).split()]
        return self._authorization(
            metadata.authorization_endpoint,
            redirect_uri,
            scope=" ".join(dict.fromkeys(scopes)),
            state=tokens.random_nonce(),
            nonce=tokens.random_nonce(),
        )

    @reported
    def identify(self, callback: Callback) -> ExternalProfile:
        """Exchange the code and validate the ID token; user info is never requested."""
        issuer = self.issuer
        metadata = self._metadata(issuer)
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
        metadata = self._metadata(self.issuer)
        token_endpoint = _token_endpoint(metadata)
        count = id_token.readable_keys(self._keys(metadata.jwks_uri))
        return TestResult(
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

    def _claims(self, metadata: Metadata, token: str, nonce: str | None) -> dict[str, Any]:
        """Return the claims of a token signed by the only key that can have signed it."""
        supported = ("RS256",) if self._is_microsoft else id_token.ALGORITHMS
        header = id_token.header(token, set(metadata.algorithms).intersection(supported))
        secret, client_id = self.provider.client_secret, self.provider.client_id
        now = self._clock.now().timestamp()
        key: jwt.PyJWK | bytes
        if header.algorithm not in id_token.SYMMETRIC:
            key = self._key(metadata.jwks_uri, header)
        elif secret:
            key = secret.encode()
        else:
            raise ProviderRejected("the ID token is signed with a secret that we do not have")
        return id_token.claims(token, header, key, client_id=client_id, nonce=nonce, now=now)

    def _key(self, url: str, header: id_token.Header) -> jwt.PyJWK:
        keys = self._keys(url)
        fitting = id_token.fitting_keys(keys, header)
        if not fitting and header.key_id is not None:
            # The provider may have rotated its keys.
            fitting = id_token.fitting_keys(self._keys(url, other_than=keys), header)
        if len(fitting) != 1:
            raise ProviderRejected("the ID token's key is unknown, or not the only one that fits")
        return fitting[0]

    def _metadata(self, issuer: Issuer) -> Metadata:
        """Return the provider's metadata.

        Raises: DiscoveryFailed.
        """

        def fetch() -> Metadata:
            document = self._fetch(f"{issuer.url}{PATH}")
            name = _text(document, "issuer")
            if not issuer.accepts_document_issuer(name):
                raise DiscoveryFailed("the document is another issuer's")
            if "code" not in _texts(document, "response_types_supported"):
                raise DiscoveryFailed("the response type code is not supported")
            _texts(document, "subject_types_supported")
            promise = document.get("authorization_response_iss_parameter_supported")
            return Metadata(
                issuer=name,
                authorization_endpoint=self._url(document, "authorization_endpoint"),
                token_endpoint=self._optional_url(document, "token_endpoint"),
                userinfo_endpoint=self._optional_url(document, "userinfo_endpoint"),
                jwks_uri=self._url(document, "jwks_uri"),
                algorithms=_texts(document, "id_token_signing_alg_values_supported"),
                promises_callback_iss=promise is True,
            )

        return self._cached(issuer, fetch)

    def _keys(self, url: str, *, other_than: KeySet | None = None) -> KeySet:
        """Return the provider's key set, fetched after `other_than`, in which a key was missing.

        Raises: DiscoveryFailed.
        """

        def fetch() -> KeySet:
            keys = self._fetch(url).get("keys")
            if not isinstance(keys, list):
                raise DiscoveryFailed("the key set has no keys")
            return tuple(key for key in keys if isinstance(key, dict))

        return self._cached(url, fetch, other_than)

    def _cached(self, key: Hashable, fetch: Callable[[], T], other_than: T | None = None) -> T:
        seconds = self.http_client.seconds_left()
        try:
            return self._cache.get(key, fetch, seconds=seconds, other_than=other_than)
        except TimeoutError:
            raise DiscoveryFailed("somebody else's question took all the time there was") from None

    def _fetch(self, url: str) -> Document:
        try:
            return json_object(self.http_client.get(url))
        except requests.RequestException as error:
            raise DiscoveryFailed(transport_reason(error)) from None
        except ProviderRejected as error:
            raise DiscoveryFailed(error.reason) from None

    def _optional_url(self, document: Document, name: str) -> str | None:
        return None if document.get(name) is None else self._url(document, name)

    def _url(self, document: Document, name: str) -> str:
        url = _text(document, name)
        if not self.http_client.allows(url):
            raise DiscoveryFailed(f"{name} may not be asked")
        return url


def _text(document: Document, name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise DiscoveryFailed(f"{name} is missing")
    return value


def _texts(document: Document, name: str) -> tuple[str, ...]:
    values = document.get(name)
    if not isinstance(values, list) or not values or not all(isinstance(v, str) for v in values):
        raise DiscoveryFailed(f"{name} is missing")
    return tuple(values)


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
