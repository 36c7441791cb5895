"""What operators set and see of providers: one schema for each kind.

Lengths are in bytes. A blank text clears an optional field.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, ValidationError, fields, post_load, pre_load

from app.external_auth.drivers.oauth2 import GithubDriver, QQDriver
from app.external_auth.drivers.openid import DEFAULT_TENANT
from app.external_auth.errors import ProviderInvalid
from app.external_auth.models import Provider, ProviderKind, TokenAuth
from app.external_auth.providers.fields import FIELDS
from app.external_auth.providers.values import (
    Absent,
    Domains,
    Issuer,
    Line,
    Scopes,
    Secret,
    Tenant,
    UnreadIssuer,
    https_address,
    icon_address,
    issuer_address,
    stored_tenant,
    tenant_options,
)
from app.web.schema import Timestamp, Word

OPENID_SCOPES = "openid profile email"


def _claim() -> Line:
    return Line(128, load_default=None)


def _required(kind: ProviderKind) -> dict[str, Any]:
    told = {"required": f"must not be empty for the kind {kind}"}
    return {"required": True, "error_messages": told}


def _url(kind: ProviderKind) -> Line:
    return Line(2048, validate=https_address, **_required(kind))


class ProviderSchema(Schema):
    """A provider: what an operator sets, and all of it but the secret as it is shown.

    `title` and `description` present the kind. `default_name` is the display name to suggest, ""
    if only the operator can know one; `tells_verified` says whether the provider tells which
    addresses it has verified.
    """

    class Meta:
        """Marshmallow's settings."""

        unknown = EXCLUDE

    kind: ClassVar[ProviderKind]
    title: ClassVar[str]
    description: ClassVar[str]
    default_name: ClassVar = ""
    default_options: ClassVar[dict[str, Any]] = {}
    default_scopes: ClassVar = OPENID_SCOPES
    requires_verified_email: ClassVar = True
    tells_verified: ClassVar = True

    id = fields.Integer(dump_only=True)
    key = fields.String(dump_only=True)
    provider_kind = Word(ProviderKind, dump_only=True)
    protocol = fields.String(dump_only=True, dump_default="oidc")
    display_name = Line(128, required=True)
    icon_url = Line(2048, load_default=None, validate=icon_address)
    options = fields.Function(lambda _: {})
    tenant: fields.Field[Any] = Absent(attribute="options", load_default={}, load_only=True)
    issuer_url: fields.Field[Any] = Absent(load_default=None)
    authorization_url: fields.Field[Any] = Absent(load_default=None)
    token_url: fields.Field[Any] = Absent(load_default=None)
    userinfo_url: fields.Field[Any] = Absent(load_default=None)
    client_id = Line(512, required=True)
    client_secret = Secret(load_default=None)
    token_auth: fields.Field[Any] = Absent(load_default=TokenAuth.AUTO)
    client_secret_configured = fields.Function(lambda provider: bool(provider.client_secret))
    scopes = Scopes("openid")
    enabled = fields.Boolean()
    auto_provision_enabled = fields.Boolean()
    auto_link_verified_email_enabled = fields.Boolean()
    require_email_verified = fields.Boolean()
    subject_claim: fields.Field[Any] = Absent(load_default=None)
    username_claim: fields.Field[Any] = Absent(load_default=None)
    display_name_claim: fields.Field[Any] = Absent(load_default=None)
    email_claim: fields.Field[Any] = Absent(load_default=None)
    email_verified_claim: fields.Field[Any] = Absent(load_default=None)
    allowed_domains = Domains(load_default=None)
    created_at = Timestamp(dump_only=True)
    updated_at = Timestamp(dump_only=True)

    @classmethod
    def create_defaults(cls) -> dict[str, Any]:
        """Return what a new provider has unless the operator says otherwise."""
        return {
            "display_name": cls.default_name,
            "options": cls.default_options,
            "scopes": cls.default_scopes,
            "enabled": True,
            "auto_provision_enabled": False,
            "auto_link_verified_email_enabled": False,
            "require_email_verified": cls.requires_verified_email,
        }

    @pre_load
    def add_defaults(
        self, typed: Mapping[str, Any], *, partial: bool | None, **_: Any
    ) -> dict[str, Any]:
        """Give a new provider the defaults of its kind."""
        return dict(typed) if partial else self.create_defaults() | dict(typed)

    def describe(self) -> dict[str, Any]:
        """Return what can be configured for the kind."""
        issuer, token_url = self.fields["issuer_url"], self.fields["token_url"]
        protocol = self.fields["protocol"].dump_default
        return {
            "kind": self.kind,
            "protocol": protocol,
            "display_name": self.title,
            "description": self.description,
            "default_scopes": self.default_scopes,
            "create_defaults": self.create_defaults(),
            "issuer_url_supported": not isinstance(issuer, Absent),
            "issuer_url_required": issuer.required,
            "manual_endpoint_configuration_supported": token_url.required,
            "authorization_url_required": token_url.required,
            "token_url_required": token_url.required,
            "userinfo_url_required": token_url.required,
            "supports_discovery": protocol == "oidc",
            "supports_pkce": True,
            "supports_email_verified_claim": self.tells_verified,
            "fields": [
                {
                    "name": field.name,
                    "form": field.form,
                    "required": self.fields[field.name].required,
                    "choices": list(field.choices or ()),
                    "is_advanced": field.is_advanced,
                }
                for field in FIELDS
                if not isinstance(self.fields[field.name], Absent)
            ],
        }


class OidcSchema(ProviderSchema):
    """Any OpenID Connect provider."""

    kind = ProviderKind.OIDC
    title = "OpenID Connect"
    description = "Any OpenID Connect provider: discovery, PKCE, nonce and ID token."
    issuer_url = Issuer(512, validate=issuer_address, **_required(kind))
    token_auth = fields.Enum(TokenAuth, by_value=True, load_default=TokenAuth.AUTO)


class GoogleSchema(ProviderSchema):
    """Google."""

    kind = ProviderKind.GOOGLE
    title = default_name = "Google"
    description = "Google accounts, by OpenID Connect."


class MicrosoftSchema(ProviderSchema):
    """Microsoft, whose stored issuer, which no interface can set, is shown as its tenant."""

    kind = ProviderKind.MICROSOFT
    title = default_name = "Microsoft"
    description = "Microsoft accounts of one tenant or of several, by OpenID Connect."
    default_options: ClassVar = tenant_options(DEFAULT_TENANT)
    requires_verified_email = False
    tells_verified = False
    options = fields.Function(lambda provider: tenant_options(stored_tenant(provider)))
    tenant = Tenant(attribute="options", load_default=default_options, load_only=True)
    issuer_url = UnreadIssuer(load_default=None)

    @post_load
    def drop_issuer(self, columns: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Have a tenant replace a stored issuer."""
        return columns | {"issuer_url": None} if "options" in columns else columns


class OAuth2Schema(ProviderSchema):
    """A provider without an ID token."""

    protocol = fields.String(dump_only=True, dump_default="oauth2")
    scopes = Scopes()


class GenericOAuth2Schema(OAuth2Schema):
    """Any OAuth 2 provider, whose issuer is only a name."""

    kind = ProviderKind.GENERIC_OAUTH2
    title = "Generic OAuth2"
    description = "Any OAuth 2 provider: endpoints by hand, PKCE, claims of its user info."
    issuer_url = Issuer(512, load_default=None, validate=issuer_address)
    authorization_url = _url(kind)
    token_url = _url(kind)
    userinfo_url = _url(kind)
    token_auth = fields.Enum(TokenAuth, by_value=True, load_default=TokenAuth.AUTO)
    subject_claim = _claim()
    username_claim = _claim()
    display_name_claim = _claim()
    email_claim = _claim()
    email_verified_claim = _claim()


class GithubSchema(OAuth2Schema):
    """GitHub."""

    kind = ProviderKind.GITHUB
    title = default_name = "GitHub"
    description = "GitHub; the address is the account's verified primary one."
    default_scopes = GithubDriver.default_scopes
    tells_verified = False


class QQSchema(OAuth2Schema):
    """QQ Connect."""

    kind = ProviderKind.QQ
    title = default_name = "QQ"
    description = "QQ Connect; it tells no address."
    default_scopes = QQDriver.default_scopes
    requires_verified_email = False
    tells_verified = False


SCHEMAS: dict[ProviderKind, ProviderSchema] = {
    schema.kind: schema()
    for schema in (
        GenericOAuth2Schema,
        GithubSchema,
        GoogleSchema,
        MicrosoftSchema,
        OidcSchema,
        QQSchema,
    )
}


def load(kind: ProviderKind, typed: Mapping[str, Any], *, partial: bool = False) -> dict[str, Any]:
    """Return the columns to store for what was typed; a new provider gets defaults for the rest.

    Raises: ProviderInvalid naming the first field that breaks a rule.
    """
    try:
        return dict(SCHEMAS[kind].load(typed, partial=partial))
    except ValidationError as error:
        name, told = next(iter(error.messages_dict.items()))
        raise ProviderInvalid(f"{name} {told[0]}") from None


def show(provider: Provider) -> dict[str, Any]:
    """Return all of a provider but its secret."""
    return dict(SCHEMAS[provider.provider_kind].dump(provider))
