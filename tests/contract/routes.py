"""The routes as the specification lists them, with who may call them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from flask import Flask

from app.crypto.tokens import random_uuid

# Who is asked to sign in, and what is open to everybody.
PUBLIC = frozenset(
    {
        ("POST", "/api/v1/auth/check"),
        ("POST", "/api/v1/auth/setup"),
        ("POST", "/api/v1/auth/register"),
        ("POST", "/api/v1/auth/register/resend"),
        ("GET", "/api/v1/auth/invitations/<token>"),
        ("POST", "/api/v1/auth/invitations/<token>/accept"),
        ("GET", "/api/v1/auth/contact-verification/confirm"),
        ("POST", "/api/v1/auth/password/reset/request"),
        ("POST", "/api/v1/auth/password/reset/confirm"),
        ("POST", "/api/v1/auth/login"),
        ("POST", "/api/v1/auth/email-code/start"),
        ("POST", "/api/v1/auth/email-code/finish"),
        ("POST", "/api/v1/auth/mfa/challenge/verify"),
        ("POST", "/api/v1/auth/mfa/challenge/email-code/send"),
        ("POST", "/api/v1/auth/passkeys/login/start"),
        ("POST", "/api/v1/auth/passkeys/login/finish"),
        ("GET", "/api/v1/auth/external-auth/providers"),
        ("POST", "/api/v1/auth/external-auth/<kind>/<provider>/start"),
        ("GET", "/api/v1/auth/external-auth/callback"),
        ("GET", "/api/v1/auth/external-auth/<kind>/<provider>/callback"),
        ("POST", "/api/v1/auth/external-auth/email-verification/start"),
        ("GET", "/api/v1/auth/external-auth/email-verification/confirm"),
        ("POST", "/api/v1/auth/external-auth/email-verification/confirm"),
        ("POST", "/api/v1/auth/external-auth/password-link"),
        ("POST", "/api/v1/auth/logout"),
        ("GET", "/api/v1/public/frontend-config"),
        ("GET", "/api/v1/public/preview-apps"),
        ("GET", "/api/v1/public/thumbnail-support"),
        ("GET", "/api/v1/public/media-data-support"),
        ("GET", "/api/v1/openapi.json"),
        ("GET", "/api/v1/docs"),
        ("GET", "/api/v1/docs/assets/<path:name>"),
        ("GET", "/api/v1/docs/swagger-ui/<version>/<name>"),
        ("POST", "/api/v1/docs/qr-code"),
        ("GET", "/.well-known/change-password"),
        ("GET", "/.well-known/passkey-endpoints"),
        ("GET", "/health"),
        ("GET", "/health/ready"),
        ("GET", "/health/metrics"),
    }
)
# What a session may do while a new password is due.
DURING_PASSWORD_CHANGE = frozenset(
    {
        ("GET", "/api/v1/auth/me"),
        ("PUT", "/api/v1/auth/password"),
        ("POST", "/api/v1/auth/logout"),
    }
)
EXAMPLES = {"session_id": random_uuid(), "id": "1", "size": "512"}


@dataclass(frozen=True)
class Route:
    """One method of one rule."""

    method: str
    rule: str
    endpoint: str
    arguments: tuple[str, ...]

    @property
    def name(self) -> tuple[str, str]:
        return self.method, self.rule

    @property
    def is_public(self) -> bool:
        return self.name in PUBLIC

    @property
    def template(self) -> str:
        """The path as the API description names it."""
        return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", self.rule)

    def path(self, **values: str) -> str:
        """Return a path that this rule matches."""
        path = self.rule
        for argument in self.arguments:
            value = values.get(argument, EXAMPLES.get(argument, "1"))
            path = re.sub(rf"<(?:\w+:)?{argument}>", lambda _, value=value: value, path)
        return path


def routes(app: Flask) -> Iterator[Route]:
    """Yield every route of the application, safe-method twins left out."""
    for rule in app.url_map.iter_rules():
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            yield Route(method, rule.rule, rule.endpoint, tuple(sorted(rule.arguments)))
