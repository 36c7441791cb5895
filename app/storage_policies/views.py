"""/admin/policies and /admin/policy-groups."""

from typing import Any

from flask import Blueprint

from app.core import product
from app.core.access import Operator, Scope
from app.storage_policies import errors, groups, migration, queries, service
from app.storage_policies.errors import ConnectorUnsupported, GroupNotFound, PolicyMissing
from app.storage_policies.groups import Item
from app.storage_policies.migration import Migrated
from app.storage_policies.models import LOCAL_CONNECTOR, StoragePolicy, StoragePolicyGroup
from app.storage_policies.schemas import (
    AssignedGroup,
    CreateGroupSchema,
    CreatePolicySchema,
    DriverLocalizations,
    GroupListQuery,
    LocalizationsQuery,
    ManagedGroup,
    ManagedPolicy,
    MigrateAssignmentsSchema,
    MigratedAssignmentsData,
    PolicyListQuery,
    RemoteNode,
    StorageDriver,
    UpdateGroupSchema,
    is_local,
)
from app.store.paging import Page, Paging, part_of
from app.teams.models import Team
from app.users.models import User
from app.web.guards import admin_may_read, admin_required
from app.web.operation import answers
from app.web.paging import PageQuery, page_of
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("storage_policies", __name__, url_prefix="/api/v1/admin")


@bp.get("/policies")
@admin_may_read()
@query_args(PolicyListQuery)
@answers(page_of(ManagedPolicy), name="adminListStoragePolicies")
def list_policies(page: Paging) -> Page:
    """List the storage policies."""
    with runtime().reading() as session:
        return queries.read_policies(session, page)


@bp.get("/policies/storage-drivers")
@admin_may_read()
@answers(StorageDriver(many=True), name="adminListStorageDrivers")
def list_drivers() -> list[dict[str, Any]]:
    """List where policies can keep files: on the machine of the file service."""
    return [{**product.LOCAL_DRIVER, "connector_id": LOCAL_CONNECTOR}]


@bp.get("/policies/storage-drivers/localizations")
@admin_may_read()
@query_args(LocalizationsQuery)
@answers(DriverLocalizations(), name="adminListStorageDriverTexts")
def list_driver_texts(locale: str | None) -> dict[str, Any]:
    """Return the texts that the descriptions of the kinds of storage name."""
    return service.driver_texts(locale or "en")


@bp.get("/remote-nodes")
@admin_may_read()
@query_args(PageQuery)
@answers(page_of(RemoteNode), name="adminListRemoteNodes")
def list_remote_nodes(page: Paging) -> Page:
    """Return that no other machine keeps files."""
    return part_of([], page)


@bp.get("/policies/<row:id>")
@admin_may_read()
@answers(ManagedPolicy(), errors=(PolicyMissing,), name="adminGetStoragePolicy")
def show_policy(id: int) -> StoragePolicy:
    """Return one storage policy."""
    with runtime().reading() as session:
        found = session.get(StoragePolicy, id)
    if found is None:
        raise PolicyMissing
    return found


@bp.post("/policies")
@admin_required(opened_by=Scope.ADMIN)
@json_body(CreatePolicySchema)
@answers(ManagedPolicy(), status=201, errors=errors.CREATE_POLICY, name="adminCreateStoragePolicy")
def create_policy(
    by: Operator,
    name: str,
    max_file_size: int,
    chunk_size: int,
    allowed_types: list[str],
    connection: dict[str, Any] | None,
    connector_config: dict[str, Any] | None,
    **named: Any,
) -> StoragePolicy:
    """Create a policy for files on this machine; it is in no group yet."""
    if not is_local(connection, connector_config, named):
        raise ConnectorUnsupported
    limits: dict[str, int] = {"max_file_size": max_file_size, "chunk_size": chunk_size}
    return service.create_policy(runtime(), by, name, allowed_types=allowed_types, **limits)


@bp.get("/policy-groups")
@admin_may_read()
@query_args(GroupListQuery)
@answers(page_of(ManagedGroup), name="adminListPolicyGroups")
def list_groups(page: Paging) -> Page:
    """List the policy groups and their policies."""
    with runtime().reading() as session:
        return queries.read_groups(session, page)


@bp.post("/policy-groups")
@admin_required(opened_by=Scope.ADMIN)
@json_body(CreateGroupSchema)
@answers(ManagedGroup(), status=201, errors=errors.CREATE_GROUP, name="adminCreatePolicyGroup")
def create_group(
    by: Operator,
    name: str,
    description: str | None,
    is_enabled: bool,
    is_default: bool,
    items: list[Item],
) -> StoragePolicyGroup:
    """Create a policy group."""
    state = {"is_enabled": is_enabled, "is_default": is_default}
    return groups.create(runtime(), by, name, items, description=description or "", **state)


@bp.get("/policy-groups/<row:id>")
@admin_may_read()
@answers(AssignedGroup(), errors=(GroupNotFound,), name="adminGetPolicyGroup")
def show_group(id: int) -> dict[str, Any]:
    """Return one policy group, with how many accounts and teams are assigned to it."""
    with runtime().reading() as session:
        group = service.get_group(session, id)
        counts = {
            "users": queries.count_assigned(session, User, id),
            "teams": queries.count_assigned(session, Team, id),
        }
        return {**vars(group), **counts}


@bp.patch("/policy-groups/<row:id>")
@admin_required(opened_by=Scope.ADMIN)
@json_body(UpdateGroupSchema)
@answers(ManagedGroup(), errors=errors.UPDATE_GROUP, name="adminUpdatePolicyGroup")
def update_group(by: Operator, id: int, **changes: Any) -> StoragePolicyGroup:
    """Change a policy group: all that is given, or nothing; items are replaced as a whole."""
    return groups.update(runtime(), by, id, **changes)


@bp.delete("/policy-groups/<row:id>")
@admin_required(opened_by=Scope.ADMIN)
@answers(errors=errors.DELETE_GROUP, name="adminDeletePolicyGroup")
def delete_group(by: Operator, id: int) -> None:
    """Delete a policy group that nobody is assigned to.

    Without the default group, no accounts can be made until there is another one.
    """
    groups.delete(runtime(), by, id)


@bp.post("/policy-groups/<row:id>/migrate-assignments")
@admin_required(opened_by=Scope.ADMIN)
@json_body(MigrateAssignmentsSchema)
@answers(MigratedAssignmentsData(), errors=errors.MIGRATE, name="migratePolicyGroupAssignments")
def migrate_assignments(by: Operator, id: int, target_group_id: int) -> Migrated:
    """Move all user and team assignments of a policy group to another one.

    A program moves no administrator's.
    """
    return migration.migrate_assignments(runtime(), by, id, target_group_id)
