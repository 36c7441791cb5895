"""Bodies, queries and answers of external sign-in."""

from collections.abc import Iterable
from typing import Any, ClassVar

from marshmallow import RAISE, fields, post_load, validate

from app.core import product
from app.crypto.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.external_auth.models import ProviderKind
from app.external_auth.providers.fields import FIELDS, TENANT, Form, ProviderField
from app.external_auth.sign_in.pending import MailAnswer
from app.external_auth.sign_in.signed_in import Intent
from app.login.schemas import remember
from app.users.schemas import EMAIL_RULE
from app.web.paging import Moment
from app.web.schema import (
    MAX_INPUT_LENGTH,
    Answer,
    RequestSchema,
    SentenceData,
    StrictBoolean,
    Text,
    Timestamp,
    Word,
    force,
    text,
)

FLOW_TOKEN = "oev_0f9d3c5be2a14876b1c0d4e8f7a69352"


class StartExternalLoginSchema(RequestSchema):
    """POST /auth/external-auth/{kind}/{provider}/start."""

    return_path = Text(load_default=None, allow_none=True)
    intent = fields.Enum(Intent, by_value=True, load_default=Intent.SIGN_IN)
    remember = remember()


class CallbackQuery(RequestSchema):
    """GET /auth/external-auth/callback; accepts any text, since a bad one just fails to sign in."""

    code = fields.String(load_default=None)
    state = fields.String(load_default=None)
    error = fields.String(load_default=None)
    error_description = fields.String(load_default=None)
    iss = fields.String(load_default=None)


class ConfirmMailboxQuery(RequestSchema):
    """GET /auth/external-auth/email-verification/confirm."""

    token = fields.String(load_default="")


class AnswerMailboxQuery(ConfirmMailboxQuery):
    """POST /auth/external-auth/email-verification/confirm."""

    answer = fields.Enum(MailAnswer, by_value=True, load_default=MailAnswer.YES)


class RequestExternalEmailSchema(RequestSchema):
    """POST /auth/external-auth/email-verification/start."""

    flow_token = text(MAX_INPUT_LENGTH, example=FLOW_TOKEN)
    email = text(MAX_INPUT_LENGTH, **EMAIL_RULE)


class LinkExternalIdentitySchema(RequestSchema):
    """POST /auth/external-auth/password-link."""

    flow_token = text(MAX_INPUT_LENGTH, example=FLOW_TOKEN)
    identifier = text(MAX_INPUT_LENGTH)
    password = text(MAX_TYPED_PASSWORD_LENGTH)


class PublicProviderItem(Answer):
    """A provider that can be used to sign in."""

    key = fields.String()
    kind = Word(ProviderKind, attribute="provider_kind")
    display_name = fields.String()
    icon_url = fields.String(allow_none=True)


class StartedExternalLoginData(Answer):
    """Where to send the browser."""

    authorization_url = fields.String(validate=validate.URL(require_tld=False))


class ExternalLinkItem(Answer):
    """One identity that can sign in to the account."""

    id = fields.Integer()
    provider_id = fields.Integer()
    provider_key = fields.String(attribute="provider.key")
    provider_kind = Word(ProviderKind, attribute="provider.provider_kind")
    provider_display_name = fields.String(attribute="provider.display_name")
    provider_icon_url = fields.String(allow_none=True, attribute="provider.icon_url")
    issuer = fields.String(attribute="identity_namespace")
    subject = fields.String()
    email_snapshot = fields.String(allow_none=True)
    display_name_snapshot = fields.String(allow_none=True)
    created_at = Timestamp()
    updated_at = Timestamp()
    last_login_at = Timestamp(allow_none=True)


# Far more than any field of a provider may have; the rules of its kind are checked later.
MAX_FIELD_LENGTH = 8192
MAX_DOMAINS = 1000


def _line(*, required: bool = False) -> Text:
    return Text(
        required=required, allow_none=not required, validate=validate.Length(max=MAX_FIELD_LENGTH)
    )


class MicrosoftOptions(RequestSchema):
    """What only Microsoft has."""

    tenant = _line()


class ProviderOptions(RequestSchema):
    """What only some kinds have."""

    microsoft = fields.Nested(MicrosoftOptions, allow_none=True)


def _typed(field: ProviderField, *, is_required: bool) -> fields.Field[Any]:
    if field.choices:
        return fields.Enum(field.choices, by_value=True, allow_none=True)
    match field.form:
        case Form.SWITCH:
            return StrictBoolean(allow_none=True)
        case Form.LIST:
            entry = Text(validate=validate.Length(max=MAX_INPUT_LENGTH))
            most = validate.Length(max=MAX_DOMAINS)
            return fields.List(entry, allow_none=True, validate=most)
        case _:
            return _line(required=is_required)


def _members(described: Iterable[ProviderField], *required: str) -> dict[str, fields.Field[Any]]:
    """Return the members of a request that set these fields."""
    return {
        field.name: _typed(field, is_required=field.name in required)
        for field in described
        if field.is_member
    }


def _unused() -> dict[str, fields.Field[Any]]:
    """Return what the product's own client sends besides, which may not say anything."""
    nothing = validate.Length(max=0, error="is not used here")
    return {name: Text(allow_none=True, validate=nothing) for name in product.PROVIDER_CLAIMS}


class ProviderFields(RequestSchema):
    """What an operator sets of a provider; loads as the fields of its kind's schema."""

    options = fields.Nested(ProviderOptions, allow_none=True)

    @post_load
    def _with_tenant(self, members: dict[str, Any], **_: Any) -> dict[str, Any]:
        for field in FIELDS:
            if field.is_clearable and members.get(field.name, "") is None:
                members[field.name] = [] if field.form is Form.LIST else ""
        options = members.pop("options", None)
        if options is not None:
            members[TENANT] = (options.get("microsoft") or {}).get("tenant") or ""
        for name in product.PROVIDER_CLAIMS:
            members.pop(name, None)
        return {name: value for name, value in members.items() if value is not None}


class DraftProviderSchema(ProviderFields):
    """POST /admin/external-auth/providers/test."""

    class Meta(RequestSchema.Meta):
        """Marshmallow's settings."""

        include = _members((field for field in FIELDS if field.is_tested), "client_id")

    provider_kind = fields.Enum(ProviderKind, by_value=True, required=True)


class CreateProviderSchema(ProviderFields):
    """POST /admin/external-auth/providers; without a key, it gets a UUID for one."""

    class Meta(RequestSchema.Meta):
        """Marshmallow's settings."""

        include = _members(FIELDS, "display_name", "client_id") | _unused()

    provider_kind = fields.Enum(ProviderKind, by_value=True, required=True)
    key = text(MAX_INPUT_LENGTH, nullable=True)


class UpdateProviderSchema(ProviderFields):
    """PATCH /admin/external-auth/providers/{id}; absent members are left as they are.

    Null clears an address, a claim, the domains or the secret, and else leaves what is stored.
    Members that are not listed here are refused.
    """

    class Meta:
        """Marshmallow's settings."""

        unknown = RAISE
        include = _members(FIELDS) | _unused()

    expected_updated_at = Moment("refuse the change if the provider is not of this time")


class RemoveProviderQuery(RequestSchema):
    """DELETE /admin/external-auth/providers/{id}."""

    is_forced = force("delete it even if accounts can sign in only with it")


class ShownOptions(Answer):
    """What only some kinds have: of Microsoft, the tenant."""

    optional = frozenset({"microsoft"})

    microsoft = fields.Dict()


def _shown(field: ProviderField) -> fields.Field[Any]:
    match field.form:
        case Form.SWITCH:
            return fields.Boolean()
        case Form.LIST:
            return fields.List(fields.String())
        case _:
            return fields.String(allow_none=field.is_nullable)


class ManagedProvider(Answer):
    """A provider as administrators see it; the secret is never shown.

    `redirect_uri` is to be registered at the provider, null while the site has no address.
    `is_secret_readable` is false if no key here decrypts the secret.
    """

    class Meta:
        """Marshmallow's settings."""

        include: ClassVar = {
            **{field.name: _shown(field) for field in FIELDS if field.is_member},
            **{
                name: fields.String(dump_default=None, allow_none=True)
                for name in product.PROVIDER_CLAIMS
            },
        }

    id = fields.Integer()
    key = fields.String()
    provider_kind = Word(ProviderKind)
    protocol = fields.String()
    options = fields.Nested(ShownOptions)
    client_secret_configured = fields.Boolean()
    redirect_uri = fields.String(allow_none=True)
    links = fields.Integer()
    last_sign_in_at = Timestamp(allow_none=True)
    is_secret_readable = fields.Boolean()
    created_at = Timestamp()
    updated_at = Timestamp()


class ProviderDefaults(Answer):
    """What a new provider has unless the operator says otherwise."""

    display_name = fields.String()
    options = fields.Nested(ShownOptions)
    scopes = fields.String()
    enabled = fields.Boolean()
    auto_provision_enabled = fields.Boolean()
    auto_link_verified_email_enabled = fields.Boolean()
    require_email_verified = fields.Boolean()


class ProviderFieldItem(Answer):
    """A field that a kind has, in the order of a form; `choices` is empty for any text."""

    name = fields.String(metadata={"examples": ["client_id"]})
    form = Word(Form)
    required = fields.Boolean()
    choices = fields.List(fields.String())
    is_advanced = fields.Boolean()


class ProviderKindItem(Answer):
    """What can be configured for a kind of provider.

    `redirect_uri` is as of a provider, and `{key}` in it stands for the key.
    """

    kind = Word(ProviderKind)
    redirect_uri = fields.String(allow_none=True)
    protocol = fields.String()
    display_name = fields.String()
    description = fields.String()
    default_scopes = fields.String()
    create_defaults = fields.Nested(ProviderDefaults)
    issuer_url_supported = fields.Boolean()
    issuer_url_required = fields.Boolean()
    manual_endpoint_configuration_supported = fields.Boolean()
    authorization_url_required = fields.Boolean()
    token_url_required = fields.Boolean()
    userinfo_url_required = fields.Boolean()
    supports_discovery = fields.Boolean()
    supports_pkce = fields.Boolean()
    supports_email_verified_claim = fields.Boolean()
    fields_ = fields.List(fields.Nested(ProviderFieldItem), data_key="fields", attribute="fields")


class ProviderCheck(Answer):
    """One thing that was looked at; `sentences` are the message, one by one."""

    name = fields.String()
    success = fields.Boolean()
    message = fields.String()
    sentences = fields.List(fields.Nested(SentenceData))


class TestedProviderData(Answer):
    """What a test found out; no sign-in was tried."""

    provider = fields.String()
    issuer = fields.String(allow_none=True)
    authorization_endpoint = fields.String(allow_none=True)
    token_endpoint = fields.String(allow_none=True)
    userinfo_endpoint = fields.String(allow_none=True)
    jwks_key_count = fields.Integer(allow_none=True)
    checks = fields.List(fields.Nested(ProviderCheck))
