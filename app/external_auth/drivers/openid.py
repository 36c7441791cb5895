"""The driver of the kinds with an ID token: discovery (OpenID Connect Discovery 1.0), code, claims.

Documents and key sets are cached for a while, once they are valid.
"""

import re
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import jwt
import requests

from app.core.texts import Sentence
from app.crypto import tokens
from app.external_auth.drivers import claims, id_token, metadata
from app.external_auth.drivers.driver import (
    Authorization,
    Callback,
    Driver,
    ExternalProfile,
    bearer,
    json_object,
    report,
    reported,
    transport_reason,
)
from app.external_auth.drivers.metadata import Document, Metadata
from app.external_auth.errors import DiscoveryFailed, ProviderMisconfigured, ProviderRejected
from app.external_auth.models import TokenAuth

PATH = "/.well-known/openid-configuration"
GOOGLE = "https://accounts.google.com"
MICROSOFT = "https://login.microsoftonline.com"
# The first asks the person; the second asks for the time, since whoever holds the browser can take
# the first out of the address.
ANEW = {"prompt": "login", "max_age": "0"}
DEFAULT_TENANT = "common"
TENANT_ALIASES = ("common", "consumers", "organizations")
# The tenant of all personal accounts.
CONSUMERS = "9188040d-6c67-4c5b-b112-36a304b66dad"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TENANT_ISSUER = re.compile(r"(https?://[^/?#]+)/([a-z0-9-]+)/v2\.0")

T = TypeVar("T")
KeySet = tuple[Mapping[str, Any], ...]


class OpenIdDriver(Driver):
    """Signs in by the authorization code flow of OpenID Connect."""

    algorithms: ClassVar[Collection[str]] = id_token.ALGORITHMS
    # Whether user info may know more than the ID token.
    reads_userinfo: ClassVar = True
    tells_sign_in_time = True

    @property
    def issuer(self) -> str:
        """The issuer to trust, without a slash at its end, which some providers' names have.

        The path of the discovery document is appended to it. Raises: ProviderMisconfigured.
        """
        if not self.provider.issuer_url:
            raise ProviderMisconfigured("issuer_url is missing")
        return self.provider.issuer_url

    def accepts_document_issuer(self, name: str) -> bool:
        """Return whether the discovery document may have `name` as its issuer."""
        return name in (self.issuer, f"{self.issuer}/")

    def accepts_token_issuer(self, name: str, documented: str) -> bool:
        """Return whether `name` may be an ID token's issuer if the document says `documented`."""
        return name == documented

    def is_email_verified(self, said: Mapping[str, Any]) -> bool:
        """Return whether the provider has verified the email address of its claims."""
        return claims.flag(said.get("email_verified"))

    @reported
    def authorize(self, redirect_uri: str, *, anew: bool = False) -> Authorization:
        """Prepare a sign-in; fail already here if the provider's keys cannot be fetched."""
        known = self._metadata()
        self._keys(known.jwks_uri)
        return self._authorization(
            known.authorization_endpoint,
            redirect_uri,
            scope=" ".join(self._scopes()),
            state=tokens.random_nonce(),
            nonce=tokens.random_nonce(),
            **(ANEW if anew else {}),
        )

    @reported
    def identify(self, callback: Callback) -> ExternalProfile:
        """Exchange the code and validate the ID token; user info adds what it does not say."""
        known = self._metadata()
        self._check_callback(callback, known)
        basic_auth = self._sends_basic(known)
        token = self._exchange(callback, _token_endpoint(known), basic_auth=basic_auth)
        if "id_token" not in token:
            raise ProviderRejected("there is no ID token")
        said = self._claims(known, token["id_token"], callback.nonce)
        vouching = said.get("iss")
        if not isinstance(vouching, str) or not self.accepts_token_issuer(vouching, known.issuer):
            raise ProviderRejected("the ID token is from another issuer")
        if callback.must_be_recent:
            id_token.require_recent(said, self.rt.clock.now().timestamp())
        profile = self._profile(claims.namespace(vouching), said)
        is_verification_told = None not in (profile.email, said.get("email_verified"))
        is_complete = is_verification_told and profile.display_name is not None
        if is_complete or not self.reads_userinfo or known.userinfo_endpoint is None:
            return profile
        added = self._user_info(profile, known.userinfo_endpoint, token["access_token"])
        if is_verification_told or profile.email not in (None, added.email):
            # Whether an address is verified is said of the one beside it.
            added = replace(added, email=profile.email, email_verified=profile.email_verified)
        return replace(
            added,
            display_name=profile.display_name or added.display_name,
            preferred_username=profile.preferred_username or added.preferred_username,
        )

    @reported
    def namespace(self) -> str | None:
        """Return the issuer; None for one that stands for many."""
        return self.issuer if self.accepts_token_issuer(self.issuer, self.issuer) else None

    @reported
    def may_assert(self, namespace: str) -> bool:
        """Return whether the namespace is the issuer, or one that it stands for."""
        is_documented = self.accepts_document_issuer(namespace)
        return is_documented and self.accepts_token_issuer(namespace, namespace)

    def test(self) -> dict[str, Any]:
        """Fetch the discovery document and the keys."""
        known = self._metadata()
        endpoints = (known.authorization_endpoint, _token_endpoint(known), known.userinfo_endpoint)
        count = id_token.readable_keys(self._keys(known.jwks_uri))
        checks = {
            "discovery": Sentence("The discovery document is complete."),
            "jwks": Sentence("Usable keys: {count}.", count=count),
        }
        lacks = metadata.shortcomings(known, self._scopes())
        if not self.client_secret or self.provider.token_auth in (TokenAuth.BASIC, TokenAuth.POST):
            lacks.pop("token_auth", None)
        return self._result(known.issuer, endpoints, checks, count, lacks)

    def _sends_basic(self, known: Metadata) -> bool:
        chosen = self.provider.token_auth
        return chosen != TokenAuth.POST and (chosen == TokenAuth.BASIC or known.takes_basic)

    def _scopes(self) -> list[str]:
        stored = (self.provider.scopes or self.default_scopes).split()
        return list(dict.fromkeys(["openid", *stored]))

    def _profile(self, namespace: str, said: Mapping[str, Any]) -> ExternalProfile:
        return ExternalProfile(
            namespace=namespace,
            subject=claims.subject(said.get("sub")),
            email=claims.email(said.get("email")),
            email_verified=self.is_email_verified(said),
            display_name=claims.name(said.get("name")),
            preferred_username=claims.name(said.get("preferred_username")),
        )

    def _user_info(self, profile: ExternalProfile, url: str, token: str) -> ExternalProfile:
        """Return what user info says of the same person (OpenID Connect Core §5.3).

        The ID token alone says who signs in, so a failure is only reported, and adds nothing.
        """
        try:
            said = json_object(self.http_client.get(url, headers=bearer(token)))
            found = self._profile(profile.namespace, said)
        except requests.RequestException as error:
            reason = transport_reason(error)
        except ProviderRejected as error:
            reason = error.reason
        else:
            if found.subject == profile.subject:
                return found
            reason = "it is somebody else's"
        report(self.provider, f"user info: {reason}", is_failure=False)
        return profile

    def _check_callback(self, callback: Callback, known: Metadata) -> None:
        """Refuse a callback that comes from another provider (RFC 9207)."""
        named = callback.issuer
        if named is None:
            if known.promises_callback_iss:
                raise ProviderRejected("the callback does not name its issuer")
        elif named != known.issuer and not self.accepts_token_issuer(named, known.issuer):
            raise ProviderRejected("the callback names another issuer")

    def _claims(self, known: Metadata, token: str, nonce: str | None) -> dict[str, Any]:
        """Return the claims of a token signed by the only key that can have signed it."""
        announced, supported = known.algorithms, self.algorithms
        header = id_token.header(token, announced=announced, supported=supported)
        secret, client_id = self.client_secret, self.provider.client_id
        now = self.rt.clock.now().timestamp()
        key: jwt.PyJWK | bytes
        if header.algorithm not in id_token.SYMMETRIC:
            key = self._key(known.jwks_uri, header)
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

    def _metadata(self) -> Metadata:
        """Return the provider's metadata.

        Raises: DiscoveryFailed.
        """

        def fetch() -> Metadata:
            document = self._fetch(f"{self.issuer}{PATH}")
            if not self.accepts_document_issuer(metadata.text(document, "issuer")):
                raise DiscoveryFailed("the document belongs to another issuer")
            return metadata.read(document, self.http_client.allows, self.algorithms)

        # The class is part of the key: what one accepts as a document another may not.
        return self._cached((type(self), self.issuer), fetch)

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
            return self.rt.http_client.cache.get(key, fetch, seconds=seconds, other_than=other_than)
        except TimeoutError:
            raise DiscoveryFailed("waiting for another request took all the time") from None

    def _fetch(self, url: str) -> Document:
        try:
            return json_object(self.http_client.get(url))
        except requests.RequestException as error:
            raise DiscoveryFailed(transport_reason(error)) from None
        except ProviderRejected as error:
            raise DiscoveryFailed(error.reason) from None


def _token_endpoint(known: Metadata) -> str:
    if known.token_endpoint is None:
        raise DiscoveryFailed("token_endpoint is missing")
    return known.token_endpoint


class GoogleDriver(OpenIdDriver):
    """Google, whose ID token says all that its user info does.

    Only apps that Google has approved for it are told when somebody signed in.
    """

    default_scopes = "profile email"
    reads_userinfo = False
    tells_sign_in_time = False

    @property
    def issuer(self) -> str:
        """Google's issuer."""
        return self.provider.issuer_url or GOOGLE


class MicrosoftDriver(OpenIdDriver):
    """Microsoft: one tenant, or an alias that stands for many.

    Its ID token says all that its user info does. A stored issuer that names no tenant is taken
    literally.
    """

    default_scopes = "profile email"
    algorithms = ("RS256",)
    reads_userinfo = False

    @property
    def issuer(self) -> str:
        """The issuer of the tenant, or of the alias.

        Raises: DiscoveryFailed if the stored tenant cannot be read: it must not become any tenant.
        """
        stored = self.provider.issuer_url
        try:
            tenant = self.provider.tenant
        except ValueError as error:
            raise DiscoveryFailed(str(error)) from None
        if tenant or not stored:
            return f"{MICROSOFT}/{tenant or DEFAULT_TENANT}/v2.0"
        return stored

    def accepts_document_issuer(self, name: str) -> bool:
        """Return whether the document may call its issuer this; an alias may use a template."""
        authority, tenant = split_issuer(self.issuer)
        if tenant is None:
            return super().accepts_document_issuer(name)
        is_template = name == f"{authority}/{{tenantid}}/v2.0"
        if tenant in TENANT_ALIASES and (is_template or self._stands_for(name)):
            return True
        return name == self.issuer

    def accepts_token_issuer(self, name: str, documented: str) -> bool:
        """Return whether `name` is a concrete tenant's issuer: this one, or one under the alias."""
        if split_issuer(self.issuer)[1] is None:
            return super().accepts_token_issuer(name, documented)
        return self._stands_for(name)

    def is_email_verified(self, said: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Return False: a tenant's administrator can give an account any email address."""
        return False

    def _stands_for(self, name: str) -> bool:
        authority, tenant = split_issuer(self.issuer)
        other_authority, other = split_issuer(name)
        if other_authority != authority or other is None or other in TENANT_ALIASES:
            return False
        if tenant == "organizations":
            return other != CONSUMERS
        return tenant == "common" or other == (CONSUMERS if tenant == "consumers" else tenant)


def split_issuer(url: str) -> tuple[str, str | None]:
    """Return the authority and the tenant of a Microsoft issuer; a tenant of None for another."""
    found = _TENANT_ISSUER.fullmatch(url)
    return (found[1], found[2]) if found and is_tenant(found[2]) else (url, None)


def tenant_of(url: str) -> str | None:
    """Return the tenant that a Microsoft issuer URL names; None for every other URL."""
    authority, tenant = split_issuer(url)
    return tenant if authority == MICROSOFT else None


def is_tenant(word: str) -> bool:
    """Return whether a lower-case word is a tenant alias or a tenant id."""
    return word in TENANT_ALIASES or _UUID.fullmatch(word) is not None
