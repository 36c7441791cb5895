"""Discovery documents and key sets of OpenID providers (OpenID Connect Discovery 1.0)."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import requests

from app.core.fetch_cache import FetchCache
from app.core.http_client import HttpClient
from app.external_auth.drivers import json_responses
from app.external_auth.drivers.issuers import Issuer
from app.external_auth.errors import DiscoveryFailed, ProviderRejected

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


class Discovery:
    """Fetches discovery documents and key sets, and caches the valid ones for a while."""

    def __init__(self, http_client: HttpClient, cache: FetchCache) -> None:
        self._http_client = http_client
        self._cache = cache

    def metadata(self, issuer: Issuer) -> Metadata:
        """Return the provider's metadata.

        Raises: DiscoveryFailed.
        """
        return self._cached(issuer, lambda: self._fetch_metadata(issuer))

    def keys(self, metadata: Metadata, *, other_than: KeySet | None = None) -> KeySet:
        """Return the provider's key set, fetched after `other_than`, in which a key was missing.

        Raises: DiscoveryFailed.
        """
        url = metadata.jwks_uri
        return self._cached(url, lambda: self._fetch_keys(url), other_than)

    def _cached(self, key: Hashable, fetch: Callable[[], T], other_than: T | None = None) -> T:
        seconds = self._http_client.seconds_left()
        try:
            return self._cache.get(key, fetch, seconds=seconds, other_than=other_than)
        except TimeoutError:
            raise DiscoveryFailed("somebody else's question took all the time there was") from None

    def _fetch_metadata(self, issuer: Issuer) -> Metadata:
        metadata = self._metadata(self._fetch(f"{issuer.url}{PATH}"))
        if not issuer.accepts_document_issuer(metadata.issuer):
            raise DiscoveryFailed("the document is another issuer's")
        return metadata

    def _fetch_keys(self, url: str) -> KeySet:
        keys = self._fetch(url).get("keys")
        if not isinstance(keys, list):
            raise DiscoveryFailed("the key set has no keys")
        return tuple(key for key in keys if isinstance(key, dict))

    def _fetch(self, url: str) -> Mapping[str, Any]:
        try:
            return json_responses.parse_object(self._http_client.get(url))
        except requests.RequestException as error:
            raise DiscoveryFailed(json_responses.transport_reason(error)) from None
        except ProviderRejected as error:
            raise DiscoveryFailed(error.reason) from None

    def _metadata(self, document: Document) -> Metadata:
        if "code" not in _texts(document, "response_types_supported"):
            raise DiscoveryFailed("the response type code is not supported")
        _texts(document, "subject_types_supported")
        return Metadata(
            issuer=_text(document, "issuer"),
            authorization_endpoint=self._required_url(document, "authorization_endpoint"),
            token_endpoint=self._url(document, "token_endpoint"),
            userinfo_endpoint=self._url(document, "userinfo_endpoint"),
            jwks_uri=self._required_url(document, "jwks_uri"),
            algorithms=_texts(document, "id_token_signing_alg_values_supported"),
            promises_callback_iss=document.get("authorization_response_iss_parameter_supported")
            is True,
        )

    def _url(self, document: Document, name: str) -> str | None:
        """Return a URL that may be requested; None if it is missing."""
        return None if document.get(name) is None else self._required_url(document, name)

    def _required_url(self, document: Document, name: str) -> str:
        url = _text(document, name)
        if not self._http_client.allows(url):
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
