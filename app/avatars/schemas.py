"""Bodies and payloads of /auth/profile/avatar."""

from marshmallow import Schema, fields

from app.users.models import AvatarSource
from app.users.schemas import ProfileInfo
from app.web.schema import RequestSchema


class SetAvatarSourceSchema(RequestSchema):
    """PUT /auth/profile/avatar/source."""

    source = fields.Enum(AvatarSource, by_value=True, required=True)


class UploadedAvatarData(Schema):
    """The profile as it is now, and whether the upload became its avatar."""

    profile = fields.Nested(ProfileInfo, required=True, attribute="account")
    applied = fields.Boolean(required=True)
