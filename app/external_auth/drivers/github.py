"""GitHub, whose email address counts only if GitHub itself has verified it (spec 03 §7.3)."""

from typing import Any
from urllib.parse import urlsplit

from app.external_auth.drivers import claims, json_responses, oauth
from app.external_auth.drivers.errors import ProviderRejected
from app.external_auth.drivers.interface import Check, ExternalProfile, ProviderConfig
from app.external_auth.drivers.plain_oauth import Endpoints, PlainOAuthDriver

NAMESPACE = "https://github.com"
AUTHORIZATION = "https://github.com/login/oauth/authorize"
TOKEN = "https://github.com/login/oauth/access_token"
USERINFO = "https://api.github.com/user"


class GithubDriver(PlainOAuthDriver):
    """Requests the user and the list of the user's email addresses."""

    checks = (
        Check("github_endpoints", True, "GitHub's endpoints are fixed."),
        Check("verified_primary_email", True, "Only the verified primary address is used."),
    )

    def endpoints(self, provider: ProviderConfig) -> Endpoints:
        """Return GitHub's endpoints."""
        return Endpoints(AUTHORIZATION, TOKEN, USERINFO).overridden_by(provider)

    def namespace(self, _provider: ProviderConfig) -> str:
        """Return GitHub's namespace."""
        return NAMESPACE

    def profile(
        self, provider: ProviderConfig, endpoints: Endpoints, access_token: str
    ) -> ExternalProfile:
        """Return the user, with the email address that is both primary and verified, if any."""
        shown = oauth.bearer(access_token)
        user = json_responses.parse_object(self.http_client.get(endpoints.userinfo, headers=shown))
        email = _primary(
            json_responses.parse_value(self.http_client.get(_emails_url(endpoints), headers=shown))
        )
        return ExternalProfile(
            namespace=self.namespace(provider),
            subject=claims.subject(claims.text(user.get("id"))),
            email=email,
            email_verified=email is not None,
            display_name=claims.name(user.get("name")),
            preferred_username=claims.name(user.get("login")),
        )


def _emails_url(endpoints: Endpoints) -> str:
    parts = urlsplit(endpoints.userinfo)
    return parts._replace(path=f"{parts.path}/emails").geturl()


def _primary(entries: Any) -> str | None:
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
