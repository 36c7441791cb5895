"""Query and payload of /auth/me."""

from marshmallow import Schema, fields, validate

from app.users.schemas import AccountBase, ProfileInfo
from app.web.schema import RequestSchema, Text


class MeQuerySchema(RequestSchema):
    """Which groups to return; none named means all."""

    fields_ = Text(
        data_key="fields",
        load_default=None,
        metadata={"description": "comma-separated: profile, preferences, quota, session"},
    )


class Preferences(Schema):
    """Every built-in preference, null while unset; `custom` only when there are any."""

    theme_mode = fields.String(required=True, allow_none=True)
    color_preset = fields.String(required=True, allow_none=True)
    view_mode = fields.String(required=True, allow_none=True)
    browser_open_mode = fields.String(required=True, allow_none=True)
    sort_by = fields.String(required=True, allow_none=True)
    sort_order = fields.String(
        required=True, allow_none=True, validate=validate.OneOf(["asc", "desc"])
    )
    language = fields.String(required=True, allow_none=True)
    display_time_zone = fields.String(required=True, allow_none=True)
    storage_event_stream_enabled = fields.Boolean(required=True, allow_none=True)
    custom = fields.Dict(keys=fields.String())


class MeData(AccountBase):
    """The account; a group that was not asked for is absent."""

    storage_used = fields.Integer()
    storage_quota = fields.Integer()
    profile = fields.Nested(ProfileInfo)
    access_token_expires_at = fields.Integer()
    preferences = fields.Nested(Preferences, allow_none=True)
