"""The OAuth 2 client: authorization request with PKCE, and exchange of the code (RFC 6749, 7636).

requests-oauthlib builds and sends the requests, through the guarded transport. Its own parsing of
responses is not strict enough (it accepts form encoding for JSON) and trips over scopes spelled
differently, so a response is validated first and only what is needed is passed on.
"""

import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

import requests
from oauthlib.oauth2 import WebApplicationClient
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

from app.core import tokens
from app.core.http_client import HttpClient
from app.core.texts import one_line
from app.external_auth.drivers import json_responses
from app.external_auth.drivers.interface import Authorization, Callback, ProviderConfig
from app.external_auth.errors import ProviderRejected

# RFC 6749, appendix A.12; anything else could not be sent in a header.
_ACCESS_TOKEN = re.compile(r"[\x21-\x7e][\x20-\x7e]*")
MAX_REASON_LENGTH = 100


@dataclass(frozen=True)
class TokenRequest:
    """How a kind of provider expects the token request (RFC 6749 §4.1.3).

    `basic_auth` sends id and secret as HTTP Basic (client_secret_basic) instead of in the form;
    `by_get` sends the form as a query string. `extra` holds further parameters of the form.
    """

    url: str
    basic_auth: bool = False
    by_get: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


def authorization(
    http_client: HttpClient,
    provider: ProviderConfig,
    *,
    url: str,
    redirect_uri: str,
    scope: str,
    state: str,
    nonce: str | None = None,
) -> Authorization:
    """Return an authorization request; a blank `scope` is omitted, the URL's own query is kept."""
    _allow_plain_http_in_development(http_client)
    client = WebApplicationClient(provider.client_id)
    verifier = tokens.random_token()
    # Take only what oauthlib adds: it re-encodes an existing query, and servers differ in parsing.
    endpoint, _, query = url.partition("?")
    _, _, added = client.prepare_request_uri(
        endpoint,
        redirect_uri=redirect_uri,
        scope=scope,
        state=state,
        nonce=nonce,
        code_challenge=client.create_code_challenge(verifier, "S256"),
        code_challenge_method="S256",
    ).partition("?")
    address = f"{endpoint}?{query}&{added}" if query else f"{endpoint}?{added}"
    return Authorization(url=address, state=state, nonce=nonce, pkce_verifier=verifier)


def exchange(
    http_client: HttpClient, provider: ProviderConfig, callback: Callback, request: TokenRequest
) -> Mapping[str, str]:
    """Exchange the code; return `access_token` and, if there was one, `id_token`.

    Raises: ProviderRejected, requests.RequestException.
    """
    _allow_plain_http_in_development(http_client)
    authentication = None
    if request.basic_auth and provider.client_secret:
        # RFC 6749 §2.3.1: both are form-encoded before being joined by a colon.
        pair = quote_plus(provider.client_id), quote_plus(provider.client_secret)
        authentication = HTTPBasicAuth(*pair)
    with OAuth2Session(provider.client_id, redirect_uri=callback.redirect_uri) as session:
        http_client.guard(session)
        session.register_compliance_hook("access_token_response", _checked)
        found: Mapping[str, str] = session.fetch_token(
            request.url,
            code=callback.code,
            code_verifier=callback.pkce_verifier,
            method="GET" if request.by_get else "POST",
            auth=authentication,
            include_client_id=authentication is None,
            client_secret=provider.client_secret or None,
            **request.extra,
        )
    return found


def bearer(access_token: str) -> dict[str, str]:
    """Return the header that carries an access token (RFC 6750 §2.1)."""
    return {"Authorization": f"Bearer {access_token}"}


def _checked(response: requests.Response) -> requests.Response:
    """Return a response reduced to the validated members that are needed.

    Raises: ProviderRejected.
    """
    answer = json_responses.parse_object(response)
    token, kind, id_token = (
        answer.get(name) for name in ("access_token", "token_type", "id_token")
    )
    if not isinstance(token, str) or not _ACCESS_TOKEN.fullmatch(token):
        raise ProviderRejected(_refusal(answer) or "there is no access token")
    if kind is not None and (not isinstance(kind, str) or kind.lower() != "bearer"):
        raise ProviderRejected("the token type is not bearer")
    kept = {"access_token": token, "token_type": "Bearer"}
    if isinstance(id_token, str):
        kept["id_token"] = id_token
    checked = requests.Response()
    checked.encoding = "utf-8"
    checked.raw = io.BytesIO(json.dumps(kept).encode())
    return checked


def _refusal(answer: Mapping[str, Any]) -> str | None:
    error = answer.get("error")
    return one_line(str(error))[:MAX_REASON_LENGTH] if error else None


def _allow_plain_http_in_development(http_client: HttpClient) -> None:
    """Under the development switch, leave it to the guard to restrict plain HTTP to loopback.

    oauthlib would refuse plain HTTP altogether, and has only a process-wide switch for that.
    """
    if http_client.allow_loopback:
        os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
