"""Schemas of accounts in requests and responses."""

from marshmallow import Schema, fields, validate

from app.core.passwords import MAX_PASSWORD_LENGTH, MAX_TYPED_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH
from app.users.models import AvatarSource, Role, Status
from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, text

USERNAME_RULE = "2 to 64 characters: A to Z, a to z, 0 to 9, dot, hyphen and underscore"
PASSWORD_RULE = f"{MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters"
AVATAR_URL = "relative to /api/v1 if it begins with a slash, else absolute"


class NewAccountSchema(RequestSchema):
    """POST /auth/setup and /auth/register."""

    username = text(MAX_INPUT_LENGTH, description=USERNAME_RULE)
    email = text(MAX_INPUT_LENGTH)
    password = text(MAX_TYPED_PASSWORD_LENGTH, description=PASSWORD_RULE)


def _avatar_url() -> fields.String:
    return fields.String(required=True, allow_none=True, metadata={"description": AVATAR_URL})


class AvatarInfo(Schema):
    """Where the avatar comes from; the addresses are null without one."""

    source = fields.String(required=True, validate=validate.OneOf(list(AvatarSource)))
    url_512 = _avatar_url()
    url_1024 = _avatar_url()
    version = fields.Integer(required=True)


class ProfileInfo(Schema):
    """Display name and avatar."""

    display_name = fields.String(required=True, allow_none=True)
    avatar = fields.Nested(AvatarInfo, required=True)


class AccountBase(Schema):
    """The fields every form of an account carries."""

    id = fields.Integer(required=True)
    username = fields.String(required=True)
    email = fields.String(required=True)
    email_verified = fields.Boolean(required=True)
    pending_email = fields.String(required=True, allow_none=True)
    role = fields.Enum(Role, by_value=True, required=True)
    status = fields.Enum(Status, by_value=True, required=True)
    must_change_password = fields.Boolean(required=True)
    policy_group_id = fields.Integer(required=True, allow_none=True)
    created_at = fields.DateTime(required=True)
    updated_at = fields.DateTime(required=True)


class UserInfo(AccountBase):
    """The whole account."""

    storage_used = fields.Integer(required=True)
    storage_quota = fields.Integer(required=True)
    profile = fields.Nested(ProfileInfo, required=True)
