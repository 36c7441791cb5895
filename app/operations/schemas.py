"""Request and response schemas of what operators and frontends ask for."""

from marshmallow import fields, validate

from app.setup.queries import SetupState
from app.web.schema import Answer, RequestSchema, Text, example_metadata

# Far longer than most; the QR code of a longer one has modules too small for many cameras.
MAX_OTPAUTH_URI_LENGTH = 512
# Printable ASCII, as in any URI. `$` alone would also match before a trailing newline.
OTPAUTH_URI = r"^otpauth://[!-~]+$(?!\n)"


class HealthData(Answer):
    """The process answers."""

    status = fields.String(validate=validate.Equal("ok"))


class OpenApiData(Answer):
    """An OpenAPI document (https://spec.openapis.org/oas/v3.1.0)."""

    openapi = fields.String()
    info = fields.Dict()
    paths = fields.Dict()
    components = fields.Dict()


class PasskeyEndpointsData(Answer):
    """Where passkeys are added and managed."""

    enroll = fields.String()
    manage = fields.String()


class ReadyData(Answer):
    """How far the installation is set up."""

    status = fields.Enum(SetupState, by_value=True)


class Branding(Answer):
    """The site's appearance, and which ways in are open."""

    title = fields.String()
    description = fields.String()
    favicon_url = fields.String()
    wordmark_dark_url = fields.String()
    wordmark_light_url = fields.String()
    site_urls = fields.List(fields.String())
    allow_user_registration = fields.Boolean()
    passkey_login_enabled = fields.Boolean()
    password_login_enabled = fields.Boolean()
    email_code_sign_in_enabled = fields.Boolean()


class DownloadDefaults(Answer):
    """Defaults of the file side."""

    archive_download_user_enabled = fields.Boolean()
    archive_download_share_enabled = fields.Boolean()


class MediaDefaults(Answer):
    """Defaults of the file side."""

    image_preview_preference = fields.String(
        validate=validate.OneOf(["original_first", "preview_first"])
    )


class FrontendConfigData(Answer):
    """What a frontend needs before anybody signs in."""

    version = fields.Integer()
    branding = fields.Nested(Branding)
    downloads = fields.Nested(DownloadDefaults)
    media = fields.Nested(MediaDefaults)


class PreviewAppsData(Answer):
    """Programs that show files."""

    version = fields.Integer()
    apps = fields.List(fields.Dict())


class WebdavSettingsData(Answer):
    """Where files are reached by WebDAV; empty if they are not."""

    endpoint = fields.String()
    prefix = fields.String()


class ExtensionSupport(Answer):
    """Whether a kind of file is handled, and by which extensions it is known."""

    enabled = fields.Boolean()
    extensions = fields.List(fields.String())


class ThumbnailSupportData(Answer):
    """Of which files there are thumbnails and previews."""

    version = fields.Integer()
    image_thumbnail = fields.Nested(ExtensionSupport)
    image_preview = fields.Nested(ExtensionSupport)
    audio_thumbnail = fields.Nested(ExtensionSupport)
    video_thumbnail = fields.Nested(ExtensionSupport)


class MediaKind(ExtensionSupport):
    """Whether data of a kind of media is read, of files with an extension or of any."""

    match = fields.String(validate=validate.OneOf(["extensions", "any"]))


class MediaKinds(Answer):
    """The kinds of media."""

    image = fields.Nested(MediaKind)
    audio = fields.Nested(MediaKind)
    video = fields.Nested(MediaKind)


class MediaDataSupportData(Answer):
    """Of which files media data is read, and up to which size in bytes."""

    version = fields.Integer()
    enabled = fields.Boolean()
    max_source_bytes = fields.Integer()
    kinds = fields.Nested(MediaKinds)


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
