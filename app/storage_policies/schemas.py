"""What requests, answers and commands show of policies and their groups."""

from marshmallow import Schema, fields

from app.web.schema import RequestSchema, Timestamp, WholeNumber


class MigrateAssignmentsSchema(RequestSchema):
    """POST /admin/policy-groups/{id}/migrate-assignments."""

    target_group_id = WholeNumber(required=True)


class MigratedAssignmentsData(Schema):
    """How many assignments were moved."""

    source_group_id = fields.Integer(required=True)
    target_group_id = fields.Integer(required=True)
    affected_users = fields.Integer(required=True)
    affected_teams = fields.Integer(required=True)
    migrated_assignments = fields.Integer(required=True)


class PolicyName(Schema):
    """A policy in a group."""

    id = fields.Integer()
    name = fields.String()
    connector_id = fields.String()


class PolicyData(PolicyName):
    """A policy."""

    is_default = fields.Boolean()
    max_file_size = fields.Integer()
    chunk_size = fields.Integer()
    created_at = Timestamp()
    updated_at = Timestamp()


class GroupItem(Schema):
    """A policy's place in a group."""

    id = fields.Integer()
    policy_id = fields.Integer()
    priority = fields.Integer()
    min_file_size = fields.Integer()
    max_file_size = fields.Integer()
    policy = fields.Nested(PolicyName)


class GroupData(Schema):
    """A group and its policies."""

    id = fields.Integer()
    name = fields.String()
    description = fields.String()
    is_enabled = fields.Boolean()
    is_default = fields.Boolean()
    created_at = Timestamp()
    updated_at = Timestamp()
    items = fields.List(fields.Nested(GroupItem))
