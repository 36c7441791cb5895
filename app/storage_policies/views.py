"""/admin/policy-groups/{id}/migrate-assignments."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.core.access import Principal
from app.core.ids import parsed_id
from app.storage_policies import migration, responses
from app.storage_policies.errors import (
    GroupNotFound,
    SameGroup,
    TargetDisabled,
    TargetEmpty,
    TargetNotPositive,
)
from app.storage_policies.schemas import MigrateAssignmentsSchema, MigratedAssignmentsData
from app.web.envelope import ok
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
@answers(
    MigratedAssignmentsData(),
    errors=(TargetNotPositive, GroupNotFound, SameGroup, TargetDisabled, TargetEmpty),
    name="migratePolicyGroupAssignments",
)
def migrate_assignments(principal: Principal, body: dict[str, Any], id: str) -> ResponseReturnValue:
    """Move all user and team assignments of a policy group to another one."""
    done = migration.migrate_assignments(
        runtime(),
        # A malformed id is an unknown group, reported only after errors of the body (04 §5.3).
        parsed_id(id) or NO_GROUP,
        body["target_group_id"],
        by=principal,
        client=client(),
    )
    return ok(responses.migrated(done))
