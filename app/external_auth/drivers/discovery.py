"""Discovery documents and key sets of OpenID providers (OpenID Connect Discovery 1.0)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

from app.core.fetch_cache import CacheEntry, FetchCache
from app.core.http_client import HttpClient
from app.external_auth.drivers import json_responses
from app.external_auth.drivers.issuers import Issuer
from app.external_auth.errors import DiscoveryFailed, ProviderRejected

PATH = "/.well-known/openid-configuration"

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
        with _timeout_as_discovery_failure():
            seconds = self._http_client.seconds_left()
            return self._cache.get(
                issuer, lambda: self._fetch_metadata(issuer), timeout_seconds=seconds
            ).value

    def keys(self, metadata: Metadata) -> CacheEntry[KeySet]:
        """Return the provider's key set.

        Raises: DiscoveryFailed.
        """
        url = metadata.jwks_uri
        with _timeout_as_discovery_failure():
            seconds = self._http_client.seconds_left()
            return self._cache.get(url, lambda: self._fetch_keys(url), timeout_seconds=seconds)

    def newer_keys(self, metadata: Metadata, than: CacheEntry[KeySet]) -> CacheEntry[KeySet]:
        """Return a key set fetched later than `than`, in which a key was missing.

        Raises: DiscoveryFailed.
        """
        url = metadata.jwks_uri
        with _timeout_as_discovery_failure():
            seconds = self._http_client.seconds_left()
            return self._cache.get_newer(
                url, than, lambda: self._fetch_keys(url), timeout_seconds=seconds
            )

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
            authorization_endpoint=self._required(document, "authorization_endpoint"),
            token_endpoint=self._url(document, "token_endpoint"),
            userinfo_endpoint=self._url(document, "userinfo_endpoint"),
            jwks_uri=self._required(document, "jwks_uri"),
            algorithms=_texts(document, "id_token_signing_alg_values_supported"),
            promises_callback_iss=document.get("authorization_response_iss_parameter_supported")
            is True,
        )

    def _required(self, document: Document, name: str) -> str:
        url = self._url(document, name)
        if url is None:
            raise DiscoveryFailed(f"{name} is missing")
        return url

    def _url(self, document: Document, name: str) -> str | None:
        """Return a URL that may be requested; None if it is missing."""
        if document.get(name) is None:
            return None
        url = _text(document, name)
        if not self._http_client.allows(url):
            raise DiscoveryFailed(f"{name} may not be asked")
        return url


@contextmanager
def _timeout_as_discovery_failure() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise DiscoveryFailed("somebody else's question took all the time there was") from None


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
