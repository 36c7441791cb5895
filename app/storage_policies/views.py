"""/admin/policy-groups/{id}/migrate-assignments."""

from flask import Blueprint

from app.core.access import Principal
from app.core.texts import parsed_id
from app.storage_policies import errors, migration
from app.storage_policies.migration import Migrated
from app.storage_policies.schemas import MigrateAssignmentsSchema, MigratedAssignmentsData
from app.web.guards import admin_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("storage_policies", __name__, url_prefix="/api/v1/admin/policy-groups")

NO_GROUP = 0


@bp.post("/<id>/migrate-assignments")
@admin_required()
@json_body(MigrateAssignmentsSchema)
@answers(MigratedAssignmentsData(), errors=errors.MIGRATE, name="migratePolicyGroupAssignments")
def migrate_assignments(principal: Principal, id: str, target_group_id: int) -> Migrated:
    """Move all user and team assignments of a policy group to another one."""
    return migration.migrate_assignments(
        runtime(),
        # A malformed id is an unknown group, reported only after errors of the body.
        parsed_id(id) or NO_GROUP,
        target_group_id,
        by=principal,
        client=client(),
    )
