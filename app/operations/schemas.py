"""Request and response schemas of the operator and frontend endpoints."""

from marshmallow import Schema, fields, validate

from app.setup.queries import SetupState
from app.web.schema import RequestSchema, Text, example_metadata

# Far longer than most; the QR code of a longer one has modules too small for many cameras.
MAX_OTPAUTH_URI_LENGTH = 512
# Printable ASCII, as in any URI. `$` alone would also match before a trailing newline.
OTPAUTH_URI = r"^otpauth://[!-~]+$(?!\n)"


class HealthData(Schema):
    """The process answers."""

    status = fields.String(required=True, validate=validate.Equal("ok"))


class OpenApiData(Schema):
    """An OpenAPI document (https://spec.openapis.org/oas/v3.1.0)."""

    openapi = fields.String(required=True)
    info = fields.Dict(required=True)
    paths = fields.Dict(required=True)
    components = fields.Dict(required=True)


class ReadyData(Schema):
    """How far the installation is set up."""

    status = fields.Enum(SetupState, by_value=True, required=True)


class Branding(Schema):
    """The site's appearance, and which ways in are open."""

    title = fields.String(required=True)
    description = fields.String(required=True)
    favicon_url = fields.String(required=True)
    wordmark_dark_url = fields.String(required=True)
    wordmark_light_url = fields.String(required=True)
    site_urls = fields.List(fields.String(), required=True)
    allow_user_registration = fields.Boolean(required=True)
    passkey_login_enabled = fields.Boolean(required=True)
    password_login_enabled = fields.Boolean(required=True)


class DownloadDefaults(Schema):
    """Defaults of the file side."""

    archive_download_user_enabled = fields.Boolean(required=True)
    archive_download_share_enabled = fields.Boolean(required=True)


class MediaDefaults(Schema):
    """Defaults of the file side."""

    image_preview_preference = fields.String(
        required=True, validate=validate.OneOf(["original_first", "preview_first"])
    )


class FrontendConfigData(Schema):
    """What a frontend needs before anybody signs in."""

    version = fields.Integer(required=True)
    branding = fields.Nested(Branding, required=True)
    downloads = fields.Nested(DownloadDefaults, required=True)
    media = fields.Nested(MediaDefaults, required=True)


class QrCodeSchema(RequestSchema):
    """POST /docs/qr-code."""

    otpauth_uri = Text(
        required=True,
        validate=[
            validate.Length(max=MAX_OTPAUTH_URI_LENGTH),
            validate.Regexp(OTPAUTH_URI, error="must be an otpauth:// link"),
        ],
        metadata=example_metadata("otpauth://totp/Files:ada?secret=JBSWY3DPEHPK3PXP&issuer=Files"),
    )
