"""Bodies, queries and answers of external sign-in."""

from marshmallow import Schema, fields, validate

from app.core.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.external_auth.models import ProviderKind
from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, Text, Timestamp, Word, text

FLOW_TOKEN = "oev_0f9d3c5be2a14876b1c0d4e8f7a69352"


class StartExternalLoginSchema(RequestSchema):
    """POST /auth/external-auth/{kind}/{provider}/start."""

    return_path = Text(load_default=None, allow_none=True)


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


class RequestExternalEmailSchema(RequestSchema):
    """POST /auth/external-auth/email-verification/start."""

    flow_token = text(MAX_INPUT_LENGTH, example=FLOW_TOKEN)
    email = text(MAX_INPUT_LENGTH)


class LinkExternalIdentitySchema(RequestSchema):
    """POST /auth/external-auth/password-link."""

    flow_token = text(MAX_INPUT_LENGTH, example=FLOW_TOKEN)
    identifier = text(MAX_INPUT_LENGTH)
    password = text(MAX_TYPED_PASSWORD_LENGTH)


class PublicProviderItem(Schema):
    """A provider that can be used to sign in."""

    key = fields.String(required=True)
    kind = Word(ProviderKind, attribute="provider_kind")
    display_name = fields.String(required=True)
    icon_url = fields.String(required=True, allow_none=True)


class StartedExternalLoginData(Schema):
    """Where to send the browser."""

    authorization_url = fields.String(required=True, validate=validate.URL(require_tld=False))


class ExternalLinkItem(Schema):
    """One identity that can sign in to the account."""

    id = fields.Integer(required=True)
    provider_id = fields.Integer(required=True)
    provider_key = fields.String(required=True, attribute="provider.key")
    provider_kind = Word(ProviderKind, attribute="provider.provider_kind")
    provider_display_name = fields.String(required=True, attribute="provider.display_name")
    provider_icon_url = fields.String(required=True, allow_none=True, attribute="provider.icon_url")
    issuer = fields.String(required=True, attribute="identity_namespace")
    subject = fields.String(required=True)
    email_snapshot = fields.String(required=True, allow_none=True)
    display_name_snapshot = fields.String(required=True, allow_none=True)
    created_at = Timestamp(required=True)
    updated_at = Timestamp(required=True)
    last_login_at = Timestamp(required=True, allow_none=True)
