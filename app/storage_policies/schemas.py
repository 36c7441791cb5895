"""What requests, answers and commands show of policies and their groups."""

from marshmallow import Schema, fields

from app.web.schema import RequestSchema, Timestamp, whole_number


class MigrateAssignmentsSchema(RequestSchema):
    """POST /admin/policy-groups/{id}/migrate-assignments."""

    target_group_id = whole_number()


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

    id = fields.Integer(attribute="StoragePolicyGroupItem.id")
    policy_id = fields.Integer(attribute="StoragePolicyGroupItem.policy_id")
    priority = fields.Integer(attribute="StoragePolicyGroupItem.priority")
    min_file_size = fields.Integer(attribute="StoragePolicyGroupItem.min_file_size")
    max_file_size = fields.Integer(attribute="StoragePolicyGroupItem.max_file_size")
    policy = fields.Nested(PolicyName, attribute="StoragePolicy")


class GroupData(Schema):
    """A group and its policies."""

    id = fields.Integer(attribute="group.id")
    name = fields.String(attribute="group.name")
    description = fields.String(attribute="group.description")
    is_enabled = fields.Boolean(attribute="group.is_enabled")
    is_default = fields.Boolean(attribute="group.is_default")
    created_at = Timestamp(attribute="group.created_at")
    updated_at = Timestamp(attribute="group.updated_at")
    items = fields.List(fields.Nested(GroupItem))
