"""What operators set and see of providers: one schema for each kind.

Lengths are in bytes. A blank text clears an optional field.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

from marshmallow import EXCLUDE, Schema, ValidationError, fields, post_load, pre_load

from app.core.addresses import is_loopback_name
from app.core.texts import has_controls
from app.crypto.secret_box import REDACTED
from app.external_auth.drivers.oauth2 import GithubDriver, QQDriver
from app.external_auth.drivers.openid import DEFAULT_TENANT, TENANT_ALIASES, is_tenant, tenant_of
from app.external_auth.errors import ProviderInvalid
from app.external_auth.models import Provider, ProviderKind, TokenAuth
from app.web.schema import Timestamp, Word

OPENID_SCOPES = "openid profile email"
MAX_DOMAIN_LENGTH = 253
MAX_SCOPE_BYTES = 128
MAX_SCOPES_BYTES = 2048

_DOMAIN = re.compile(r"[a-z0-9.-]+")


def _tenant_options(tenant: str | None) -> dict[str, Any]:
    return {"microsoft": {"tenant": tenant}} if tenant else {}


def _tenant_of(provider: Provider) -> str | None:
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


def _https_address(text: str) -> None:
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


def _icon_address(text: str) -> None:
    """Refuse what is neither a path of this site nor such a URL."""
    if not text.startswith("/"):
        _https_address(text)
    elif text.startswith("//") or any(c.isspace() or c in "#\\" for c in text):
        raise ValidationError("must be a path on this site or an https address")


def _issuer_address(text: str) -> None:
    _https_address(text)
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
        return None if _tenant_of(obj) else value


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
        return _tenant_options(named)


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


def _claim() -> Line:
    return Line(128, load_default=None)


def _required(kind: ProviderKind) -> dict[str, Any]:
    told = {"required": f"must not be empty for the kind {kind}"}
    return {"required": True, "error_messages": told}


def _url(kind: ProviderKind) -> Line:
    return Line(2048, validate=_https_address, **_required(kind))


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
    icon_url = Line(2048, load_default=None, validate=_icon_address)
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
    subject_claim = _claim()
    username_claim = _claim()
    display_name_claim = _claim()
    email_claim = _claim()
    email_verified_claim = _claim()
    groups_claim = _claim()
    avatar_url_claim = _claim()
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
        }


class OidcSchema(ProviderSchema):
    """Any OpenID Connect provider."""

    kind = ProviderKind.OIDC
    title = "OpenID Connect"
    description = "Any OpenID Connect provider: discovery, PKCE, nonce and ID token."
    issuer_url = Issuer(512, validate=_issuer_address, **_required(kind))
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
    default_options: ClassVar = _tenant_options(DEFAULT_TENANT)
    requires_verified_email = False
    tells_verified = False
    options = fields.Function(lambda provider: _tenant_options(_tenant_of(provider)))
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
    issuer_url = Issuer(512, load_default=None, validate=_issuer_address)
    authorization_url = _url(kind)
    token_url = _url(kind)
    userinfo_url = _url(kind)
    token_auth = fields.Enum(TokenAuth, by_value=True, load_default=TokenAuth.AUTO)


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
