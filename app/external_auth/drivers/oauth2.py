"""Drivers of the kinds without an ID token: code, then access token, then user info."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import requests

from app.core.texts import Sentence, origin_of
from app.crypto import tokens
from app.external_auth.drivers import claims
from app.external_auth.drivers.driver import (
    Authorization,
    Callback,
    Driver,
    ExternalProfile,
    bearer,
    error_word,
    json_object,
    json_value,
    reported,
)
from app.external_auth.errors import ProviderMisconfigured, ProviderRejected
from app.external_auth.models import TokenAuth

GITHUB = "https://github.com"
# Without it QQ's responses are form-encoded, or a call of a JavaScript function (JSONP).
_AS_JSON = {"fmt": "json"}


class Endpoints(NamedTuple):
    """The URLs of a provider's endpoints."""

    authorization: str
    token: str
    userinfo: str


class OAuth2Driver(Driver):
    """Signs in by OAuth 2 alone; a subclass knows the endpoints and interprets the responses."""

    # Used unless the stored provider has its own.
    fixed_endpoints: ClassVar[tuple[str | None, str | None, str | None]] = (None, None, None)
    # What is special about the token request.
    token_options: ClassVar[Mapping[str, Any]] = {}
    # The results of a test, which are constant: no endpoint can be tested without a user.
    checks: ClassVar[Mapping[str, Sentence]]

    @abstractmethod
    def namespace(self) -> str:
        """Return the namespace of the subjects.

        Raises: ProviderMisconfigured.
        """

    @abstractmethod
    def profile(self, endpoints: Endpoints, access_token: str) -> ExternalProfile:
        """Fetch the profile of the user behind an access token.

        Raises: ProviderRejected, requests.RequestException.
        """

    @property
    def issuer(self) -> str | None:
        """The issuer that a test shows, which is only a name here."""
        return self.provider.issuer_url

    @property
    def endpoints(self) -> Endpoints:
        """The provider's endpoints.

        Raises: ProviderMisconfigured if one is missing, or may not be requested: stored loopback
        URLs may be off limits.
        """
        row = self.provider
        stored = (row.authorization_url, row.token_url, row.userinfo_url)
        urls = [url or fixed for url, fixed in zip(stored, self.fixed_endpoints, strict=True)]
        allowed = [url for url in urls if url and self.http_client.allows(url)]
        if len(allowed) != len(urls):
            raise ProviderMisconfigured("an endpoint is missing, or not https")
        return Endpoints(*allowed)

    @reported
    def authorize(self, redirect_uri: str, *, anew: bool = False) -> Authorization:  # noqa: ARG002
        """Prepare a sign-in; OAuth 2 has no words for `anew`."""
        url, state = self.endpoints.authorization, f"oauth2_{tokens.random_hex()}"
        scope = self.provider.scopes or self.default_scopes
        return self._authorization(url, redirect_uri, scope=scope, state=state)

    @reported
    def identify(self, callback: Callback) -> ExternalProfile:
        """Exchange the code, once, and request the user info."""
        endpoints = self.endpoints
        self._check_callback(callback, endpoints)
        basic_auth = self.provider.token_auth == TokenAuth.BASIC
        options = self.token_options
        token = self._exchange(callback, endpoints.token, basic_auth=basic_auth, **options)
        return self.profile(endpoints, token["access_token"])

    @reported
    def may_assert(self, namespace: str) -> bool:
        """Return whether the subjects belong to this namespace."""
        return namespace == self.namespace()

    def test(self) -> dict[str, Any]:
        """Check that the configuration is complete."""
        return self._result(self.issuer, self.endpoints, self.checks)

    def _check_callback(self, callback: Callback, endpoints: Endpoints) -> None:
        """Refuse a callback that names another provider, whose code this one must not receive.

        These kinds have a known issuer only if an administrator configured one; otherwise the named
        one must have the origin that the browser was sent to (RFC 9207 §2.4, RFC 9700 §4.4).
        """
        named, configured = callback.issuer, self.provider.issuer_url
        if named is None:
            return
        try:
            is_ours = (
                named.removesuffix("/") == configured
                if configured
                else origin_of(named) == origin_of(endpoints.authorization)
            )
        except ValueError:
            is_ours = False
        if not is_ours:
            raise ProviderRejected("the callback names another issuer")


class GenericOAuth2Driver(OAuth2Driver):
    """Takes all URLs and claim names from the provider's configuration."""

    checks: ClassVar = {
        "manual_endpoints": Sentence("All three endpoints are set."),
        "authorization_code": Sentence("Sign-in uses the authorization code with PKCE."),
    }

    def namespace(self) -> str:
        """Return the issuer, which is only a name here, or else the authorization URL's origin."""
        return self.provider.issuer_url or origin_of(self.provider.authorization_url or "")

    def profile(self, endpoints: Endpoints, access_token: str) -> ExternalProfile:
        """Read the claims by their configured names."""
        shown = bearer(access_token)
        answer = json_object(self.http_client.get(endpoints.userinfo, headers=shown))
        stored = self.provider

        def text(name: str) -> str | None:
            return claims.text(claims.find(answer, name))

        subject_claim = stored.subject_claim or "sub"
        # Use "id" only if "sub" is absent: an unusable "sub" must not turn into another identity.
        if subject_claim == "sub" and claims.find(answer, "sub") is None:
            subject_claim = "id"
        verified = claims.find(answer, stored.email_verified_claim or "email_verified")
        return ExternalProfile(
            namespace=claims.namespace(self.namespace()),
            subject=claims.subject(text(subject_claim)),
            email=claims.email(text(stored.email_claim or "email")),
            email_verified=claims.flag(verified),
            display_name=claims.name(text(stored.display_name_claim or "name")),
            preferred_username=claims.name(text(stored.username_claim or "preferred_username")),
        )


class GithubDriver(OAuth2Driver):
    """GitHub: requests the user, and the list of the user's email addresses."""

    default_scopes = "read:user user:email"
    fixed_endpoints = (
        f"{GITHUB}/login/oauth/authorize",
        f"{GITHUB}/login/oauth/access_token",
        "https://api.github.com/user",
    )
    checks: ClassVar = {
        "github_endpoints": Sentence("GitHub's endpoints are fixed."),
        "verified_primary_email": Sentence("Only the verified primary address is used."),
    }

    def namespace(self) -> str:
        """Return GitHub's namespace."""
        return GITHUB

    def profile(self, endpoints: Endpoints, access_token: str) -> ExternalProfile:
        """Return the user, with the email address that is both primary and verified, if any."""
        shown = bearer(access_token)
        user = json_object(self.http_client.get(endpoints.userinfo, headers=shown))
        parts = urlsplit(endpoints.userinfo)
        emails_url = parts._replace(path=f"{parts.path}/emails").geturl()
        email = _primary(json_value(self.http_client.get(emails_url, headers=shown)))
        return ExternalProfile(
            namespace=self.namespace(),
            subject=claims.subject(claims.text(user.get("id"))),
            email=email,
            email_verified=email is not None,
            display_name=claims.name(user.get("name")),
            preferred_username=claims.name(user.get("login")),
        )


class QQDriver(OAuth2Driver):
    """QQ, which identifies users by an openid per client and reports no address.

    Requests the token by GET, then the openid, then the nickname.
    """

    default_scopes = "get_user_info"
    fixed_endpoints = (
        "https://graph.qq.com/oauth2.0/authorize",
        "https://graph.qq.com/oauth2.0/token",
        "https://graph.qq.com/user/get_user_info",
    )
    checks: ClassVar = {
        "qq_endpoints": Sentence("QQ's endpoints are fixed."),
        "qq_openid": Sentence("The openid identifies the user."),
    }
    token_options: ClassVar = {"method": "GET", **_AS_JSON}

    @property
    def issuer(self) -> str | None:
        """The namespace."""
        return self.namespace()

    def namespace(self) -> str:
        """Return a namespace for this client alone, since an openid is valid for one client."""
        return f"qq:{self.provider.client_id}"

    def profile(self, endpoints: Endpoints, access_token: str) -> ExternalProfile:
        """Return the user behind the token, without an email address."""
        shown, client_id = {"access_token": access_token}, self.provider.client_id
        parts = urlsplit(endpoints.token)
        openid_url = parts._replace(path=f"{parts.path.rpartition('/')[0]}/me").geturl()
        person = _accepted(self.http_client.get(openid_url, params=shown | _AS_JSON))
        if person.get("client_id") not in (None, "", client_id):
            raise ProviderRejected("the openid is for another client")
        openid = claims.subject(claims.text(person.get("openid")))
        shown |= {"oauth_consumer_key": client_id, "openid": openid}
        info = _accepted(self.http_client.get(endpoints.userinfo, params=shown))
        return ExternalProfile(
            namespace=claims.namespace(self.namespace()),
            subject=openid,
            display_name=claims.name(info.get("nickname")),
        )


def _primary(entries: Any) -> str | None:
    """Return GitHub's verified primary address, or None.

    Raises: ProviderRejected.
    """
    if not isinstance(entries, list):
        raise ProviderRejected("the addresses are not a list")
    for entry in entries:
        if not isinstance(entry, dict):
            raise ProviderRejected("an address is not an object")
        if entry.get("primary") is True and entry.get("verified") is True:
            address = claims.email(entry.get("email"))
            if address is None:
                raise ProviderRejected("the primary address is empty")
            return address
    return None


def _accepted(response: requests.Response) -> Mapping[str, Any]:
    """Return the object of a response that is not a refusal; QQ refuses with status 200."""
    answer = json_object(response)
    if answer.get("ret", 0) != 0 or answer.get("error"):
        word = error_word(answer.get("error") or answer.get("ret"))
        raise ProviderRejected(f"QQ refused: {word}")
    return answer
