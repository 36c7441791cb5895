"""/admin/teams."""

from typing import Any

from flask import Blueprint, Response

from app.audit.models import EntityType
from app.audit.queries import EntryFilter
from app.audit_log import service as audit_log
from app.audit_log.export import ExportFormat
from app.audit_log.schemas import TeamAuditExportQuery, TeamAuditItem, TeamAuditQuery
from app.audit_log.views import EXPORTED, attachment
from app.core.access import Operator, Scope
from app.store.paging import Page, Paging
from app.team_admin import errors
from app.team_admin import service as teams
from app.teams import queries, service
from app.teams.errors import TeamNotFound
from app.teams.models import ManagedTeam, Membership, Team, TeamRole
from app.teams.schemas import (
    MEMBER_COUNTS,
    AddMemberSchema,
    CreateTeamSchema,
    ManagedTeamItem,
    MemberListQuery,
    SetMemberRoleSchema,
    TeamListQuery,
    TeamMemberItem,
    UpdateTeamSchema,
)
from app.users import queries as users_queries
from app.web.guards import admin_may_read, admin_required
from app.web.operation import answers
from app.web.paging import page_of
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("admin_teams", __name__, url_prefix="/api/v1/admin/teams")


@bp.get("")
@admin_may_read()
@query_args(TeamListQuery)
@answers(page_of(ManagedTeamItem), name="adminListTeams")
def list_teams(page: Paging, archived: bool, keyword: str | None) -> Page:
    """List the teams: those in use, or those that are archived."""
    with runtime().reading() as session:
        return queries.read_page(session, page, archived=archived, keyword=keyword)


@bp.post("")
@admin_required(opened_by=Scope.ADMIN)
@json_body(CreateTeamSchema)
@answers(ManagedTeamItem(), status=201, errors=errors.CREATE_TEAM, name="adminCreateTeam")
def create(
    by: Operator,
    name: str,
    description: str | None,
    admin_user_id: int | None,
    admin_identifier: str | None,
    storage_quota: int | None,
    policy_group_id: int | None,
) -> ManagedTeam:
    """Create a team; the account named becomes its owner."""
    rt = runtime()
    owner = teams.account_id(rt, admin_user_id, admin_identifier)
    about = {"storage_quota": storage_quota, "policy_group": policy_group_id}
    return _shown(teams.create(rt, by, name, owner, description=description or "", **about))


@bp.get("/<row:id>")
@admin_may_read()
@answers(ManagedTeamItem(), errors=(TeamNotFound,), name="adminGetTeam")
def show(id: int) -> ManagedTeam:
    """Return one team, archived or not."""
    with runtime().reading() as session:
        return _shown(service.named(session, id))


@bp.patch("/<row:id>")
@admin_required(opened_by=Scope.ADMIN)
@json_body(UpdateTeamSchema)
@answers(ManagedTeamItem(), errors=errors.UPDATE_TEAM, name="adminUpdateTeam")
def update(by: Operator, id: int, **changes: Any) -> ManagedTeam:
    """Change a team: all that is given, or nothing."""
    return _shown(teams.update(runtime(), by, id, **changes))


@bp.delete("/<row:id>")
@admin_required(opened_by=Scope.ADMIN)
@answers(errors=(TeamNotFound,), name="adminArchiveTeam")
def archive(by: Operator, id: int) -> None:
    """Archive a team; it is deleted some days later. Archiving it again changes nothing."""
    teams.archive(runtime(), by, id)


@bp.post("/<row:id>/restore")
@admin_required(opened_by=Scope.ADMIN)
@answers(ManagedTeamItem(), errors=errors.RESTORE_TEAM, name="adminRestoreTeam")
def restore(by: Operator, id: int) -> ManagedTeam:
    """Take an archived team into use again."""
    return _shown(teams.restore(runtime(), by, id))


@bp.get("/<row:id>/members")
@admin_may_read()
@query_args(MemberListQuery)
@answers(
    page_of(TeamMemberItem, **MEMBER_COUNTS), errors=(TeamNotFound,), name="adminListTeamMembers"
)
def list_members(id: int, page: Paging, **chosen: Any) -> dict[str, Any]:
    """List the members of a team, owners first.

    `owner_count` and `manager_count` (owners and administrators) are of the whole team.
    """
    with runtime().reading() as session:
        return service.read_members(session, page, id, **chosen)


@bp.post("/<row:id>/members")
@admin_required(opened_by=Scope.ADMIN)
@json_body(AddMemberSchema)
@answers(TeamMemberItem(), status=201, errors=errors.ADD_MEMBER, name="adminAddTeamMember")
def add_member(
    by: Operator, id: int, user_id: int | None, identifier: str | None, role: TeamRole
) -> Membership:
    """Add an account to a team."""
    rt = runtime()
    account_id = teams.account_id(rt, user_id, identifier)
    teams.add_member(rt, by, id, account_id, role)
    return service.get_membership(rt, id, account_id)


@bp.patch("/<row:id>/members/<row:user_id>")
@admin_required(opened_by=Scope.ADMIN)
@json_body(SetMemberRoleSchema)
@answers(TeamMemberItem(), errors=errors.SET_MEMBER_ROLE, name="adminSetTeamMemberRole")
def set_role(by: Operator, id: int, user_id: int, role: TeamRole, **state: Any) -> Membership:
    """Change the role of a member."""
    with service.addressed():
        teams.set_role(runtime(), by, id, user_id, role, **state)
    return service.get_membership(runtime(), id, user_id)


@bp.delete("/<row:id>/members/<row:user_id>")
@admin_required(opened_by=Scope.ADMIN)
@answers(errors=errors.CHANGE_MEMBER, name="adminRemoveTeamMember")
def remove_member(by: Operator, id: int, user_id: int) -> None:
    """Remove a member; the last owner cannot be removed."""
    with service.addressed():
        teams.remove_member(runtime(), by, id, user_id)


@bp.get("/<row:id>/audit-logs")
@admin_may_read()
@query_args(TeamAuditQuery)
@answers(page_of(TeamAuditItem), errors=(TeamNotFound,), name="adminListTeamAuditEntries")
def list_entries(id: int, page: Paging, **chosen: Any) -> Page:
    """List what was done to a team and its members."""
    return audit_log.read_page_of_team(runtime(), page, _filter(id, chosen))


@bp.get("/<row:id>/audit-logs/export")
@admin_required(opened_by=Scope.ADMIN_READ, confirmation="if_set")
@query_args(TeamAuditExportQuery)
@answers(media_type=EXPORTED, errors=errors.EXPORT_TEAM_AUDIT_LOG, name="adminExportTeamAuditLog")
def export(by: Operator, id: int, page: Paging, kind: ExportFormat, **chosen: Any) -> Response:
    """Return what was done to a team as a file, like the export of the whole audit log."""
    return attachment(by, page, _filter(id, chosen), kind)


def _filter(id: int, chosen: dict[str, Any]) -> EntryFilter:
    with runtime().reading() as session:
        team = service.named(session, id)
    return EntryFilter(entity_type=EntityType.TEAM, entity_id=team.id, **chosen)


def _shown(team: Team) -> ManagedTeam:
    if team.created_by is None:
        return ManagedTeam(team, None)
    with runtime().reading() as session:
        return ManagedTeam(team, users_queries.find_account(session, team.created_by))
