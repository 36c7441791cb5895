"""QQ, which identifies users by an openid per client and reports no address (spec 03 §7.3)."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import requests

from app.external_auth.drivers import claims, json_responses, oauth
from app.external_auth.drivers.errors import ProviderRejected
from app.external_auth.drivers.interface import Check, ExternalProfile, ProviderConfig
from app.external_auth.drivers.plain_oauth import Endpoints, PlainOAuthDriver

AUTHORIZATION = "https://graph.qq.com/oauth2.0/authorize"
TOKEN = "https://graph.qq.com/oauth2.0/token"
USERINFO = "https://graph.qq.com/user/get_user_info"

# Without it QQ's responses are form-encoded, or a call of a JavaScript function (JSONP).
_AS_JSON = {"fmt": "json"}


class QQDriver(PlainOAuthDriver):
    """Requests the token by GET, then the openid, then the nickname."""

    checks = (
        Check("qq_endpoints", True, "QQ's endpoints are fixed."),
        Check("qq_openid", True, "The openid identifies the user."),
    )

    def endpoints(self, provider: ProviderConfig) -> Endpoints:
        """Return QQ's endpoints."""
        return Endpoints(AUTHORIZATION, TOKEN, USERINFO).overridden_by(provider)

    def token_request(self, endpoints: Endpoints) -> oauth.TokenRequest:
        """Return QQ's form of the token request."""
        return oauth.TokenRequest(endpoints.token, by_get=True, extra=_AS_JSON)

    def namespace(self, provider: ProviderConfig) -> str:
        """Return a namespace for this client alone, since an openid is valid for one client."""
        return f"qq:{provider.client_id}"

    def issuer(self, provider: ProviderConfig) -> str | None:
        """Return the namespace."""
        return self.namespace(provider)

    def profile(
        self, provider: ProviderConfig, endpoints: Endpoints, access_token: str
    ) -> ExternalProfile:
        """Return the user behind the token, without an email address."""
        shown = {"access_token": access_token}
        person = _accepted(self.http_client.get(_openid_url(endpoints), params=shown | _AS_JSON))
        if person.get("client_id") not in (None, "", provider.client_id):
            raise ProviderRejected("the openid is for another client")
        openid = claims.subject(claims.text(person.get("openid")))
        shown |= {"oauth_consumer_key": provider.client_id, "openid": openid}
        info = _accepted(self.http_client.get(endpoints.userinfo, params=shown))
        return ExternalProfile(
            namespace=claims.namespace(self.namespace(provider)),
            subject=openid,
            display_name=claims.name(info.get("nickname")),
        )


def _openid_url(endpoints: Endpoints) -> str:
    parts = urlsplit(endpoints.token)
    return parts._replace(path=f"{parts.path.rpartition('/')[0]}/me").geturl()


def _accepted(response: requests.Response) -> Mapping[str, Any]:
    """Return the object of a response that is not a refusal; QQ refuses with status 200."""
    answer = json_responses.parse_object(response)
    if answer.get("ret", 0) != 0 or answer.get("error"):
        raise ProviderRejected("QQ refused")
    return answer
