"""The base of all drivers: an OAuth 2 client that sends PKCE (RFC 6749, 7636).

A driver uses neither the database nor Redis; its callers have no transaction open.

requests-oauthlib builds and sends the requests, through the guarded transport; `_TokenClient` reads
what token endpoints answer.
"""

import json
import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, Concatenate, NoReturn, ParamSpec, TypeVar
from urllib.parse import quote_plus

import requests
from oauthlib.oauth2 import OAuth2Token, WebApplicationClient
from prometheus_client import Counter
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

from app.core.http_client import RequestRefused
from app.core.runtime import Runtime
from app.core.texts import Sentence, one_line
from app.crypto import tokens
from app.external_auth.errors import ProviderFailed, ProviderRejected
from app.external_auth.models import Provider

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound="Driver")

# RFC 6749, appendix A.12; anything else could not be sent in a header.
_ACCESS_TOKEN = re.compile(r"[\x21-\x7e][\x20-\x7e]*")
# What an `error` cannot contain (RFC 6749, appendix A.7).
_NOT_IN_ERROR = re.compile(r"[^\x20\x21\x23-\x5b\x5d-\x7e]")
# Of a user info endpoint (RFC 6750 §3).
_CHALLENGE_ERROR = re.compile(r'\berror="([^"]*)"')
MAX_REASON_LENGTH = 100

log = logging.getLogger(__name__)

FAILURES = Counter(
    "external_auth_failures_total",
    "Sign-ins that failed at the provider.",
    ["kind", "provider"],
)


@dataclass(frozen=True)
class Authorization:
    """Where to send the browser, and what to remember until it returns.

    `nonce` is None for kinds without an ID token.
    """

    url: str = field(repr=False)
    state: str = field(repr=False)
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)


@dataclass(frozen=True)
class Callback:
    """What the browser returned with, and what was remembered for it.

    `issuer` is the parameter `iss` (RFC 9207), None if it was missing. `must_be_recent`: the person
    must just have signed in at the provider.
    """

    code: str = field(repr=False)
    redirect_uri: str
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)
    issuer: str | None = None
    must_be_recent: bool = False


@dataclass(frozen=True)
class ExternalProfile:
    """A user of a provider: (`namespace`, `subject`) identifies them, the rest describes them."""

    namespace: str
    subject: str
    email: str | None = None
    email_verified: bool = False
    display_name: str | None = None
    preferred_username: str | None = None


def parse_json(text: bytes) -> Any:
    """Return the value of a JSON text in UTF-8 (RFC 8259 §8.1).

    Raises: ValueError, also for NaN and infinities, and for text nested too deeply.
    """
    try:
        # json.loads would accept UTF-16 and UTF-32 as well.
        return json.loads(text.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def error_word(value: Any) -> str:
    """Return the `error` of a refusal as it may be logged; "" if there is none."""
    if not isinstance(value, str | int):
        return ""
    return one_line(_NOT_IN_ERROR.sub(" ", str(value)))[:MAX_REASON_LENGTH]


def _refusal(response: requests.Response) -> str:
    """Return the status of a failed response, and the `error` in its body or its challenge."""
    try:
        answer = parse_json(response.content)
    except ValueError:
        answer = None
    word = error_word(answer.get("error")) if isinstance(answer, dict) else ""
    challenge = _CHALLENGE_ERROR.search(response.headers.get("WWW-Authenticate", ""))
    if not word and challenge:
        word = error_word(challenge[1])
    return f"status {response.status_code}" + (f": {word}" if word else "")


def json_value(response: requests.Response) -> Any:
    """Return the JSON value of a successful response, whatever its content type.

    Raises: ProviderRejected.
    """
    if not 200 <= response.status_code < 300:
        raise ProviderRejected(_refusal(response))
    try:
        return parse_json(response.content)
    except ValueError:
        raise ProviderRejected("the answer is not JSON") from None


def json_object(response: requests.Response) -> dict[str, Any]:
    """Return the JSON object of a successful response.

    Raises: ProviderRejected.
    """
    found = json_value(response)
    if not isinstance(found, dict):
        raise ProviderRejected("the answer is not an object")
    return found


def bearer(access_token: str) -> dict[str, str]:
    """Return the header that carries an access token (RFC 6750 §2.1)."""
    return {"Authorization": f"Bearer {access_token}"}


def transport_reason(error: requests.RequestException) -> str:
    """Describe a transport error: by its text only if it is our own, which repeats no secret."""
    return str(error) if isinstance(error, RequestRefused) else type(error).__name__


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def report(provider: Provider, reason: str, *, is_failure: bool = True) -> None:
    """Log why a provider cannot be used, and count it; browsers do not learn why.

    What ends no sign-in, or is a person's own choice, is no failure and not counted.
    """
    kind, key = provider.provider_kind, provider.key
    if is_failure:
        FAILURES.labels(str(kind), key).inc()
    log.warning("external provider %s (%s): %s", key, kind, reason)


def callback_refusal(provider: Provider, error: str) -> ProviderRejected:
    """Report the `error` that a browser came back with (RFC 6749 §4.1.2.1); return it to raise."""
    word = error_word(error)
    report(provider, f"the callback says: {word}", is_failure=word != "access_denied")
    return ProviderRejected(word)


def reported(method: Callable[Concatenate[D, P], T]) -> Callable[Concatenate[D, P], T]:
    """Report the failures of a driver's method; those of the transport become ProviderRejected."""

    @wraps(method)
    def call(driver: D, /, *arguments: P.args, **keywords: P.kwargs) -> T:
        try:
            return method(driver, *arguments, **keywords)
        except requests.RequestException as error:
            rejected = ProviderRejected(transport_reason(error))
            report(driver.provider, rejected.reason)
            raise rejected from None
        except ProviderFailed as error:
            report(driver.provider, error.reason)
            raise

    return call


class Driver(ABC):
    """Speaks to one provider for a single use: its time budget starts when it is made.

    `client_secret` is in clear. `default_scopes` are requested unless some are stored.
    `tells_sign_in_time`: whether the provider says when the person signed in there.
    """

    default_scopes: ClassVar = ""
    tells_sign_in_time: ClassVar = False

    def __init__(self, rt: Runtime, provider: Provider, client_secret: str | None) -> None:
        self.rt = rt
        self.provider = provider
        self.client_secret = client_secret
        self.http_client = rt.http_client.conversation()
        if self.http_client.allow_loopback:
            # Under the development switch leave it to the guard to restrict plain HTTP to loopback:
            # oauthlib would refuse it altogether, and has only a process-wide switch for that.
            os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"

    @abstractmethod
    def authorize(self, redirect_uri: str, *, anew: bool = False) -> Authorization:
        """Prepare a sign-in; `anew` has the provider ask even a person that it knows.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """

    @abstractmethod
    def identify(self, callback: Callback) -> ExternalProfile:
        """Exchange the code, and return the user that it was issued for.

        Raises: ProviderRejected, DiscoveryFailed, ProviderMisconfigured.
        """

    @abstractmethod
    def namespace(self) -> str | None:
        """Return the namespace of the provider's subjects; None if it varies by user.

        In a profile it may have a trailing slash. Raises: ProviderMisconfigured.
        """

    @abstractmethod
    def may_assert(self, namespace: str) -> bool:
        """Return whether the provider may assert identities of this namespace.

        Raises: ProviderMisconfigured.
        """

    @abstractmethod
    def test(self) -> dict[str, Any]:
        """Check whether the provider is usable, as far as possible without a sign-in.

        Returns its issuer, its endpoints, how many keys it has, and what was checked.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """

    def _result(
        self,
        issuer: str | None,
        endpoints: tuple[str | None, ...],
        checks: Mapping[str, Sentence],
        key_count: int | None = None,
        shortcomings: Mapping[str, Sentence] | None = None,
    ) -> dict[str, Any]:
        """Return the result of a test, with the endpoints for authorization, token and userinfo.

        `shortcomings` are checks that failed, although the provider can be used.
        """
        names = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint")
        return {
            "issuer": issuer,
            **dict(zip(names, endpoints, strict=True)),
            "jwks_key_count": key_count,
            "checks": [
                {
                    "name": name,
                    "success": success,
                    "message": str(sentence),
                    "sentences": [vars(sentence)],
                }
                for found, success in ((checks, True), (shortcomings or {}, False))
                for name, sentence in found.items()
            ],
        }

    def _authorization(
        self,
        url: str,
        redirect_uri: str,
        *,
        scope: str,
        state: str,
        nonce: str | None = None,
        **more: str,
    ) -> Authorization:
        """Return an authorization request; a blank `scope` is left out, the URL's query is kept."""
        client, verifier = WebApplicationClient(self.provider.client_id), tokens.random_token()
        # Take only what oauthlib adds: it re-encodes a query, and servers differ in parsing.
        endpoint, _, query = url.partition("?")
        _, _, added = client.prepare_request_uri(
            endpoint,
            redirect_uri=redirect_uri,
            scope=scope,
            state=state,
            nonce=nonce,
            code_challenge=client.create_code_challenge(verifier, "S256"),
            code_challenge_method="S256",
            **more,
        ).partition("?")
        address = f"{endpoint}?{query}&{added}" if query else f"{endpoint}?{added}"
        return Authorization(url=address, state=state, nonce=nonce, pkce_verifier=verifier)

    def _exchange(
        self, callback: Callback, url: str, *, basic_auth: bool = False, **options: Any
    ) -> Mapping[str, str]:
        """Exchange the code; return `access_token` and, if there was one, `id_token`.

        `basic_auth` sends id and secret as HTTP Basic (client_secret_basic) instead of in the form;
        `options` are `fetch_token`'s, or further parameters.
        Raises: ProviderRejected, requests.RequestException.
        """
        client_id, secret = self.provider.client_id, self.client_secret or None
        authentication = None
        if basic_auth and secret:
            # RFC 6749 §2.3.1: both are form-encoded before being joined by a colon.
            authentication = HTTPBasicAuth(quote_plus(client_id), quote_plus(secret))
        client = _TokenClient(client_id)
        with OAuth2Session(client=client, redirect_uri=callback.redirect_uri) as session:
            self.http_client.guard(session)
            session.register_compliance_hook("access_token_response", client.read)
            found: Mapping[str, str] = session.fetch_token(
                url,
                code=callback.code,
                code_verifier=callback.pkce_verifier,
                auth=authentication,
                include_client_id=authentication is None,
                client_secret=secret,
                **options,
            )
        return found


class _TokenClient(WebApplicationClient):
    """Reads the answer of a token endpoint as strictly as RFC 6749 puts it, section 5.1.

    oauthlib's own client takes form encoding for JSON, and trips over scopes spelt differently.
    """

    def read(self, response: requests.Response) -> requests.Response:
        """Keep the validated members that are needed; a hook of the session.

        Raises: ProviderRejected.
        """
        answer = json_object(response)
        token, kind, id_token = (
            answer.get(name) for name in ("access_token", "token_type", "id_token")
        )
        if not isinstance(token, str) or not _ACCESS_TOKEN.fullmatch(token):
            raise ProviderRejected(error_word(answer.get("error")) or "there is no access token")
        if kind is not None and (not isinstance(kind, str) or kind.lower() != "bearer"):
            raise ProviderRejected("the token type is not bearer")
        self.token = {"access_token": token, "token_type": "Bearer"}
        if isinstance(id_token, str):
            self.token["id_token"] = id_token
        return response

    def parse_request_body_response(self, body: str, scope: Any = None, **_: Any) -> OAuth2Token:  # noqa: ARG002
        """Return what `read` kept."""
        return OAuth2Token(self.token)
