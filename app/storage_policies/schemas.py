"""Request and response of the administrative operation (spec, Endpoints)."""

from marshmallow import Schema, fields

from app.web.schema import RequestSchema, whole_number


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
