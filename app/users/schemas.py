"""How an account looks on the wire, also when it is about to be made."""

from marshmallow import Schema, fields, validate

from app.core.passwords import LONGEST_TYPED_PASSWORD
from app.users.models import AvatarSource, Role, Status
from app.web.schema import LONGEST_INPUT, RequestSchema, text


class NewAccountSchema(RequestSchema):
    """POST /auth/setup and /auth/register."""

    username = text(LONGEST_INPUT)
    email = text(LONGEST_INPUT)
    password = text(LONGEST_TYPED_PASSWORD)


class AvatarInfo(Schema):
    """Where the avatar comes from; the addresses are null without one."""

    source = fields.String(required=True, validate=validate.OneOf(list(AvatarSource)))
    url_512 = fields.String(required=True, allow_none=True)
    url_1024 = fields.String(required=True, allow_none=True)
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
