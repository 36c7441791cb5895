"""Request and response schemas of what operators and frontends ask for."""

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


class PreviewAppsData(Schema):
    """Programs that show files."""

    version = fields.Integer(required=True)
    apps = fields.List(fields.Dict(), required=True)


class ExtensionSupport(Schema):
    """Whether a kind of file is handled, and by which extensions it is known."""

    enabled = fields.Boolean(required=True)
    extensions = fields.List(fields.String(), required=True)


class ThumbnailSupportData(Schema):
    """Of which files there are thumbnails and previews."""

    version = fields.Integer(required=True)
    image_thumbnail = fields.Nested(ExtensionSupport, required=True)
    image_preview = fields.Nested(ExtensionSupport, required=True)
    audio_thumbnail = fields.Nested(ExtensionSupport, required=True)
    video_thumbnail = fields.Nested(ExtensionSupport, required=True)


class MediaKind(ExtensionSupport):
    """Whether data of a kind of media is read, of files with an extension or of any."""

    match = fields.String(required=True, validate=validate.OneOf(["extensions", "any"]))


class MediaKinds(Schema):
    """The kinds of media."""

    image = fields.Nested(MediaKind, required=True)
    audio = fields.Nested(MediaKind, required=True)
    video = fields.Nested(MediaKind, required=True)


class MediaDataSupportData(Schema):
    """Of which files media data is read, and up to which size in bytes."""

    version = fields.Integer(required=True)
    enabled = fields.Boolean(required=True)
    max_source_bytes = fields.Integer(required=True)
    kinds = fields.Nested(MediaKinds, required=True)


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
