"""What the fields of a provider may say: texts, addresses, scopes, tenants, domains.

Lengths are in bytes. A blank text clears an optional field.
"""

import re
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from marshmallow import ValidationError, fields

from app.core.addresses import is_loopback_name
from app.core.texts import has_controls
from app.crypto.secret_box import REDACTED
from app.external_auth.drivers.openid import DEFAULT_TENANT, TENANT_ALIASES, is_tenant, tenant_of
from app.external_auth.models import Provider

MAX_DOMAIN_LENGTH = 253
MAX_SCOPE_BYTES = 128
MAX_SCOPES_BYTES = 2048

_DOMAIN = re.compile(r"[a-z0-9.-]+")


def tenant_options(tenant: str | None) -> dict[str, Any]:
    """Return the options that name a Microsoft tenant."""
    return {"microsoft": {"tenant": tenant}} if tenant else {}


def stored_tenant(provider: Provider) -> str | None:
    """Return the tenant of a provider, even if only its issuer names it; None if it has none."""
    with suppress(ValueError):
        return provider.tenant or tenant_of(provider.issuer_url or "")
    return None


class Secret(fields.Field[str]):
    """A secret, stripped; None for a blank one. It is never shown."""

    def __init__(self, max_bytes: int = 4096, **settings: Any) -> None:
        super().__init__(**settings)
        self.max_bytes = max_bytes

    def _serialize(self, value: Any, *_: Any, **__: Any) -> Any:
        return REDACTED if value else None

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        text = value.strip()
        if len(text.encode()) > self.max_bytes:
            raise ValidationError(f"must have at most {self.max_bytes} bytes")
        return text or None


class Line(Secret):
    """A line of text, stripped; None for a blank one, which a required line refuses."""

    def __init__(self, max_bytes: int, **settings: Any) -> None:
        settings.setdefault("error_messages", {"required": "must not be empty"})
        super().__init__(max_bytes, **settings)

    def _validate(self, value: Any) -> None:
        if value is not None:
            super()._validate(value)

    def _serialize(self, value: Any, *_: Any, **__: Any) -> Any:
        return value

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        text = super()._deserialize(value)
        if text is None and self.required:
            raise self.make_error("required")
        if has_controls(text or ""):
            raise ValidationError("must not contain control characters")
        return text


def https_address(text: str) -> None:
    """Refuse what is neither an https URL nor an http one of a loopback host."""
    problem = ValidationError(
        "must be an https address without a fragment, or on this machine an http one, with "
        "GATEHOUSE_ALLOW_LOOPBACK_HTTP=1"
    )
    if "#" in text or "\\" in text or not text.isascii() or any(map(str.isspace, text)):
        raise problem
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise problem from None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback_name(host or ""))
    if not host or "@" in parts.netloc or not is_safe:
        raise problem


def icon_address(text: str) -> None:
    """Refuse what is neither a path of this site nor such a URL."""
    if not text.startswith("/"):
        https_address(text)
    elif text.startswith("//") or any(c.isspace() or c in "#\\" for c in text):
        raise ValidationError("must be a path on this site or an https address")


def issuer_address(text: str) -> None:
    """Refuse what cannot be the address of an issuer."""
    https_address(text)
    if "?" in text:
        raise ValidationError("must not have a query")


class Issuer(Line):
    """The URL of an issuer, without a slash at its end."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        text = super()._deserialize(value)
        return text and text.rstrip("/")


class Absent(fields.Field[Any]):
    """What a kind does not have: neither set nor shown."""

    def _serialize(self, value: Any, *_: Any, **__: Any) -> Any:  # noqa: ARG002
        return None

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        if value.strip():
            kind = getattr(self.parent, "kind", None)
            raise ValidationError(f"cannot be set for the kind {kind}")
        return self.load_default


class UnreadIssuer(Absent):
    """A stored Microsoft issuer, shown only if it names no tenant."""

    def _serialize(self, value: Any, attr: Any, obj: Any, **_: Any) -> Any:  # noqa: ARG002
        return None if stored_tenant(obj) else value


class Scopes(fields.Field[str]):
    """Scopes separated by spaces, each once; those of `always` come first if missing."""

    def __init__(self, *always: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.always = always

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        scopes = list(dict.fromkeys(value.split()))
        scopes = [*(scope for scope in self.always if scope not in scopes), *scopes]
        for scope in scopes:
            Line(MAX_SCOPE_BYTES).deserialize(scope)
        return Line(MAX_SCOPES_BYTES).deserialize(" ".join(scopes)) or ""


class Tenant(fields.Field[Any]):
    """A Microsoft tenant: an alias, a UUID or its issuer's URL; kept among the options."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        text = value.strip().lower()
        named = tenant_of(text.removesuffix("/")) or text or DEFAULT_TENANT
        if not is_tenant(named):
            words = ", ".join(TENANT_ALIASES)
            raise ValidationError(f"must be {words}, or a tenant's UUID")
        return tenant_options(named)


class Domains(fields.Field[list[str]]):
    """The only email domains to accept; None if every domain is allowed."""

    def _serialize(self, value: Any, *_: Any, **__: Any) -> Any:
        return value if isinstance(value, list) else []

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        bare = (domain.strip().removeprefix("@").lower() for domain in value)
        domains = list(dict.fromkeys(domain for domain in bare if domain))
        for domain in domains:
            too_long = len(domain) > MAX_DOMAIN_LENGTH
            if too_long or "." not in domain or not _DOMAIN.fullmatch(domain):
                raise ValidationError("must name domains such as example.com")
        return domains or None
