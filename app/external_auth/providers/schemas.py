"""What administrators see of providers and of their kinds."""

from typing import Any

from marshmallow import Schema, fields, post_dump

from app.core.secret_box import REDACTED
from app.external_auth.drivers.issuers import DEFAULT_TENANT, tenant_of
from app.external_auth.kinds import Protocol, ProviderKind
from app.external_auth.models import Provider
from app.external_auth.providers import rules
from app.web.schema import Timestamp, Word


class ProviderData(Schema):
    """The whole provider except its secret."""

    id = fields.Integer()
    key = fields.String()
    provider_kind = Word(ProviderKind)
    protocol = Word(Protocol, attribute="provider_kind.traits.protocol")
    display_name = fields.String()
    icon_url = fields.String()
    options = fields.Dict(attribute="stored_options")
    issuer_url = fields.String()
    authorization_url = fields.String()
    token_url = fields.String()
    userinfo_url = fields.String()
    client_id = fields.String()
    client_secret = fields.Function(lambda provider: REDACTED if provider.client_secret else None)
    client_secret_configured = fields.Function(lambda provider: bool(provider.client_secret))
    scopes = fields.String()
    enabled = fields.Boolean()
    auto_provision_enabled = fields.Boolean()
    auto_link_verified_email_enabled = fields.Boolean()
    require_email_verified = fields.Boolean()
    subject_claim = fields.String()
    username_claim = fields.String()
    display_name_claim = fields.String()
    email_claim = fields.String()
    email_verified_claim = fields.String()
    groups_claim = fields.String()
    avatar_url_claim = fields.String()
    allowed_domains = fields.List(fields.String(), attribute="domains")
    created_at = Timestamp()
    updated_at = Timestamp()

    @post_dump(pass_original=True)
    def hide_urls(self, data: dict[str, Any], provider: Provider, **_: Any) -> dict[str, Any]:
        """Leave out the URLs of a dedicated kind, which no interface can store.

        A Microsoft issuer is shown as the tenant that it names; one that names none, as it is.
        """
        kind, issuer_url = provider.provider_kind, data["issuer_url"]
        if kind.is_dedicated:
            data |= dict.fromkeys(("issuer_url", *rules.ENDPOINTS))
        if kind is ProviderKind.MICROSOFT:
            if tenant := provider.tenant or tenant_of(issuer_url or ""):
                data["options"] = {"microsoft": {"tenant": tenant}}
            else:
                data["issuer_url"] = issuer_url
        return data


def kind_data(kind: ProviderKind) -> dict[str, Any]:
    """Return what can be configured for a kind."""
    traits, is_manual = kind.traits, kind.has_manual_endpoints
    is_microsoft = kind is ProviderKind.MICROSOFT
    return {
        "kind": kind,
        "protocol": traits.protocol,
        "display_name": traits.display_name,
        "description": traits.description,
        "default_scopes": traits.default_scopes,
        "create_defaults": {
            "display_name": traits.default_name,
            "options": {"microsoft": {"tenant": DEFAULT_TENANT}} if is_microsoft else {},
            "scopes": traits.default_scopes,
            "enabled": True,
            "auto_provision_enabled": False,
            "auto_link_verified_email_enabled": False,
            "require_email_verified": traits.requires_verified_email,
        },
        "issuer_url_supported": not kind.is_dedicated,
        "issuer_url_required": kind is ProviderKind.OIDC,
        "manual_endpoint_configuration_supported": is_manual,
        "authorization_url_required": is_manual,
        "token_url_required": is_manual,
        "userinfo_url_required": is_manual,
        "supports_discovery": traits.protocol is Protocol.OIDC,
        "supports_pkce": True,
        "supports_email_verified_claim": traits.tells_verified,
    }
