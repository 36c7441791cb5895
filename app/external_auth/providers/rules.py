"""Validation of a provider's fields.

Every rule takes what was typed and returns what is stored, or raises ProviderInvalid naming the
field. Lengths are in bytes.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from app.core.addresses import is_loopback_name
from app.core.texts import has_controls
from app.external_auth.drivers.issuers import (
    DEFAULT_TENANT,
    TENANT_ALIASES,
    is_tenant,
    tenant_of,
)
from app.external_auth.errors import KindUnknown, ProviderInvalid, ProviderKeyInvalid
from app.external_auth.kinds import ALIASES, Protocol, ProviderKind

OPENID = "openid"
ENDPOINTS = ("authorization_url", "token_url", "userinfo_url")
CLAIMS = (
    "subject_claim",
    "username_claim",
    "display_name_claim",
    "email_claim",
    "email_verified_claim",
    "groups_claim",
    "avatar_url_claim",
)
FLAGS = (
    "enabled",
    "auto_provision_enabled",
    "auto_link_verified_email_enabled",
    "require_email_verified",
)

MAX_DOMAIN_LENGTH = 253
MAX_SCOPES_BYTES = 2048
MAX_BYTES = {
    "display_name": 128,
    "client_id": 512,
    "client_secret": 4096,
    "icon_url": 2048,
    "issuer_url": 512,
    "scopes": 128,  # each of them
    **dict.fromkeys(ENDPOINTS, 2048),
    **dict.fromkeys(CLAIMS, 128),
}

_KEY = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])")
_DOMAIN = re.compile(r"[a-z0-9.-]+")


def named_kind(typed: str) -> ProviderKind:
    """Return the kind with this wire name or alias.

    Raises: KindUnknown.
    """
    try:
        return ALIASES.get(typed) or ProviderKind(typed)
    except ValueError:
        raise KindUnknown from None


def provider_key(typed: str) -> str:
    """Return a provider's key, stripped and in lower case.

    Raises: ProviderKeyInvalid.
    """
    key = typed.strip().lower()
    if not _KEY.fullmatch(key):
        raise ProviderKeyInvalid
    return key


def new_columns(kind: ProviderKind, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a new provider; fields missing from `typed` get their defaults.

    Raises: ProviderInvalid.
    """
    traits = kind.traits
    defaults: dict[str, Any] = {
        "display_name": traits.default_name,
        "client_id": "",
        "icon_url": None,
        "issuer_url": None,
        **dict.fromkeys(ENDPOINTS),
        "tenant": None,
        "scopes": traits.default_scopes,
        "enabled": True,
        "auto_provision_enabled": False,
        "auto_link_verified_email_enabled": False,
        "require_email_verified": traits.requires_verified_email,
        **dict.fromkeys(CLAIMS),
        "allowed_domains": (),
    }
    return changed_columns(kind, defaults | dict(typed))


def changed_columns(kind: ProviderKind, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns to store for the fields in `typed`.

    Fields are named as on the wire, but `tenant` stands for `options`, and `allowed_domains` is a
    list; a blank text clears an optional field. Raises: ProviderInvalid.
    """
    columns = {
        name: rule(kind, name, typed[name]) for name, rule in _RULES.items() if name in typed
    }
    if "tenant" in typed:
        columns["options"] = json.dumps(_options(kind, typed["tenant"]))
    return columns


def client_secret(typed: str | None) -> str | None:
    """Return the secret to store; None for a blank one.

    Raises: ProviderInvalid.
    """
    secret = (typed or "").strip()
    if len(secret.encode()) > MAX_BYTES["client_secret"]:
        raise ProviderInvalid(f"client_secret must have at most {MAX_BYTES['client_secret']} bytes")
    return secret or None


def _optional(_kind: ProviderKind, name: str, typed: str | None) -> str | None:
    text = (typed or "").strip()
    if len(text.encode()) > MAX_BYTES[name]:
        raise ProviderInvalid(f"{name} must have at most {MAX_BYTES[name]} bytes")
    if has_controls(text):
        raise ProviderInvalid(f"{name} must not contain control characters")
    return text or None


def _required(kind: ProviderKind, name: str, typed: str | None) -> str:
    text = _optional(kind, name, typed)
    if text is None:
        raise ProviderInvalid(f"{name} must not be empty")
    return text


def _provider_url(kind: ProviderKind, name: str, typed: str | None) -> str | None:
    """Return a URL of the provider, which a kind must have, may have or cannot have."""
    is_issuer = name == "issuer_url"
    url = _url(kind, name, typed)
    if url is None:
        if kind is ProviderKind.OIDC if is_issuer else kind.has_manual_endpoints:
            raise ProviderInvalid(f"{name} must not be empty for the kind {kind}")
        return None
    if kind.is_dedicated if is_issuer else not kind.has_manual_endpoints:
        raise ProviderInvalid(f"{name} cannot be set for the kind {kind}")
    if is_issuer and "?" in url:
        raise ProviderInvalid("issuer_url must not have a query")
    return url.rstrip("/") if is_issuer else url


def _url(kind: ProviderKind, name: str, typed: str | None) -> str | None:
    """Return an https URL, or an http one of a loopback host; None for a blank text."""
    text = _optional(kind, name, typed)
    if text is None:
        return None
    problem = ProviderInvalid(f"{name} must be an https address without fragment")
    if "#" in text or "\\" in text or not text.isascii() or any(map(str.isspace, text)):
        raise problem
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise problem from None
    if not host or "@" in parts.netloc:
        raise problem
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback_name(host)):
        return text
    raise problem


def _icon_url(kind: ProviderKind, name: str, typed: str | None) -> str | None:
    text = _optional(kind, name, typed)
    if text is None or not text.startswith("/"):
        return _url(kind, name, text)
    if text.startswith("//") or any(c.isspace() or c in "#\\" for c in text):
        raise ProviderInvalid("icon_url must be a path of this site or an https address")
    return text


def _scopes(kind: ProviderKind, name: str, typed: str) -> str:
    """Return the scopes without duplicates; for OpenID Connect, prepend a missing `openid`."""
    scopes = list(dict.fromkeys(typed.split()))
    if kind.traits.protocol is Protocol.OIDC and OPENID not in scopes:
        scopes.insert(0, OPENID)
    for scope in scopes:
        _optional(kind, name, scope)
    joined = " ".join(scopes)
    if len(joined.encode()) > MAX_SCOPES_BYTES:
        raise ProviderInvalid(f"scopes must have at most {MAX_SCOPES_BYTES} bytes")
    return joined


def _options(kind: ProviderKind, tenant: str | None) -> dict[str, Any]:
    text = (tenant or "").strip().lower()
    if kind is not ProviderKind.MICROSOFT:
        if text:
            raise ProviderInvalid(f"options.microsoft cannot be set for the kind {kind}")
        return {}
    named = tenant_of(text.removesuffix("/")) or text or DEFAULT_TENANT
    if not is_tenant(named):
        words = ", ".join(sorted(TENANT_ALIASES))
        raise ProviderInvalid(f"options.microsoft.tenant must be {words}, or a tenant's UUID")
    return {"microsoft": {"tenant": named}}


def _allowed_domains(_kind: ProviderKind, _name: str, typed: Iterable[str] | None) -> str | None:
    """Return the domains as JSON without duplicates; None if every domain is allowed."""
    bare = (domain.strip().removeprefix("@").lower() for domain in typed or ())
    domains = list(dict.fromkeys(domain for domain in bare if domain))
    for domain in domains:
        if len(domain) > MAX_DOMAIN_LENGTH or "." not in domain or not _DOMAIN.fullmatch(domain):
            raise ProviderInvalid("allowed_domains must name domains such as example.com")
    return json.dumps(domains) if domains else None


_RULES: dict[str, Callable[[ProviderKind, str, Any], Any]] = {
    "display_name": _required,
    "client_id": _required,
    "icon_url": _icon_url,
    "issuer_url": _provider_url,
    "scopes": _scopes,
    "allowed_domains": _allowed_domains,
    **dict.fromkeys(ENDPOINTS, _provider_url),
    **dict.fromkeys(CLAIMS, _optional),
    **dict.fromkeys(FLAGS, lambda _kind, _name, value: bool(value)),
}
