"""Bodies and payloads of /auth/profile/avatar."""

from marshmallow import fields

from app.users.models import AvatarSource
from app.users.schemas import ProfileInfo
from app.web.schema import Answer, RequestSchema


class SetAvatarSourceSchema(RequestSchema):
    """PUT /auth/profile/avatar/source."""

    source = fields.Enum(AvatarSource, by_value=True, required=True)


class UploadedAvatarData(Answer):
    """The profile as it is now, and whether the upload became its avatar."""

    profile = fields.Nested(ProfileInfo, attribute="account")
    applied = fields.Boolean()
