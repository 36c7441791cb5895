"""What commands show of teams."""

from marshmallow import Schema, fields

from app.web.schema import Timestamp


class MemberData(Schema):
    """A member; `created_at` is when the account joined."""

    user_id = fields.Integer()
    username = fields.String()
    email = fields.String()
    role = fields.String()
    created_at = Timestamp()


class TeamData(Schema):
    """A team."""

    id = fields.Integer()
    name = fields.String()
    description = fields.String()
    created_by = fields.Integer()
    owner_id = fields.Integer()
    member_count = fields.Integer()
    storage_used = fields.Integer()
    storage_quota = fields.Integer()
    policy_group_id = fields.Integer()
    created_at = Timestamp()
    updated_at = Timestamp()
    archived_at = Timestamp()
