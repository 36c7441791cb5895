"""/teams/{id}: what members do with a team."""

from functools import partial
from typing import Any

from flask import Blueprint, Response

from app.audit.models import EntityType
from app.audit.queries import EntryFilter
from app.audit_log import service as audit_log
from app.audit_log.export import ExportFormat
from app.audit_log.schemas import TeamAuditExportQuery, TeamAuditItem, TeamAuditQuery
from app.audit_log.views import EXPORTED, attachment
from app.core.access import Operator, Principal
from app.own_teams import errors
from app.own_teams import service as own_teams
from app.own_teams.service import Rule
from app.store.paging import Page, Paging
from app.team_admin import service as team_admin
from app.teams import service as teams
from app.teams.models import Membership, OwnTeam, TeamRole
from app.teams.schemas import (
    MEMBER_COUNTS,
    AddMemberSchema,
    CreateOwnTeamSchema,
    MemberListQuery,
    OwnTeamItem,
    SetMemberRoleSchema,
    TeamMemberItem,
    UpdateOwnTeamSchema,
)
from app.web.guards import login_required
from app.web.operation import answers
from app.web.paging import page_of
from app.web.peer import client
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("own_teams", __name__, url_prefix="/api/v1/teams")


@bp.post("")
@login_required()
@json_body(CreateOwnTeamSchema)
@answers(OwnTeamItem(), status=201, errors=errors.CREATE, name="createTeam")
def create(principal: Principal, name: str, description: str | None) -> OwnTeam:
    """Create a team that the caller owns.

    With the default quota and policy group. Unless `teams_self_service` is on, only administrators
    may.
    """
    rt = runtime()
    made = own_teams.create(rt, principal, client(), name, description or "")
    return own_teams.get(rt, made.id, principal.user_id)


@bp.get("/<row:id>")
@login_required()
@answers(OwnTeamItem(), errors=errors.READ, name="getTeam")
def show(principal: Principal, id: int) -> OwnTeam:
    """Return a team of the caller, archived or not."""
    return own_teams.get(runtime(), id, principal.user_id)


@bp.patch("/<row:id>")
@login_required()
@json_body(UpdateOwnTeamSchema)
@answers(OwnTeamItem(), errors=errors.UPDATE, name="updateTeam")
def update(principal: Principal, id: int, **given: Any) -> OwnTeam:
    """Change the name or the description; for owners and administrators of the team."""
    by = _allowed(principal, id, teams.require_manager)
    changes = {name: value for name, value in given.items() if value is not None}
    team_admin.update(runtime(), by, id, **changes)
    return own_teams.get(runtime(), id, principal.user_id)


@bp.delete("/<row:id>")
@login_required()
@answers(errors=errors.ARCHIVE, name="archiveTeam")
def archive(principal: Principal, id: int) -> None:
    """Archive a team, which is deleted some days later; for its owners."""
    team_admin.archive(runtime(), _allowed(principal, id, teams.require_owner), id)


@bp.post("/<row:id>/restore")
@login_required()
@answers(OwnTeamItem(), errors=errors.RESTORE, name="restoreTeam")
def restore(principal: Principal, id: int) -> OwnTeam:
    """Take an archived team into use again; for its owners and administrators."""
    team_admin.restore(runtime(), _allowed(principal, id, teams.require_manager), id)
    return own_teams.get(runtime(), id, principal.user_id)


@bp.get("/<row:id>/members")
@login_required()
@query_args(MemberListQuery)
@answers(page_of(TeamMemberItem, **MEMBER_COUNTS), errors=errors.READ, name="listTeamMembers")
def list_members(principal: Principal, id: int, page: Paging, **chosen: Any) -> dict[str, Any]:
    """List the members of a team, owners first; every member may.

    `owner_count` and `manager_count` (owners and administrators) are of the whole team.
    """
    with runtime().reading() as session:
        teams.require_member(session, id, principal.user_id)
        return teams.read_members(session, page, id, **chosen)


@bp.post("/<row:id>/members")
@login_required()
@json_body(AddMemberSchema)
@answers(TeamMemberItem(), status=201, errors=errors.ADD_MEMBER, name="addTeamMember")
def add_member(
    principal: Principal, id: int, user_id: int | None, identifier: str | None, role: TeamRole
) -> Membership:
    """Add an account to a team; for its owners and administrators. Only owners add an owner."""
    rule = teams.require_owner if role is TeamRole.OWNER else teams.require_manager
    by = _allowed(principal, id, rule)
    added = own_teams.add_member(runtime(), by, id, (user_id, identifier), role)
    return teams.get_membership(runtime(), id, added)


@bp.patch("/<row:id>/members/<row:user_id>")
@login_required()
@json_body(SetMemberRoleSchema)
@answers(TeamMemberItem(), errors=errors.SET_MEMBER_ROLE, name="setTeamMemberRole")
def set_role(
    principal: Principal, id: int, user_id: int, role: TeamRole, **state: Any
) -> Membership:
    """Change the role of a member; for owners and administrators of the team.

    Only owners make somebody an owner, or an owner something else.
    """
    may_change = partial(own_teams.may_change, member_id=user_id)
    rule = teams.require_owner if role is TeamRole.OWNER else may_change
    by = _allowed(principal, id, rule)
    own_teams.limit_changes(runtime(), by)
    with teams.addressed():
        team_admin.set_role(runtime(), by, id, user_id, role, **state)
    return teams.get_membership(runtime(), id, user_id)


@bp.delete("/<row:id>/members/<row:user_id>")
@login_required()
@answers(errors=errors.REMOVE_MEMBER, name="removeTeamMember")
def remove_member(principal: Principal, id: int, user_id: int) -> None:
    """Remove a member; for owners and administrators of the team, and for who wants to leave.

    Only owners remove an owner, and the last one stays.
    """
    by = _allowed(principal, id, partial(own_teams.may_remove, member_id=user_id))
    if user_id != principal.user_id:
        own_teams.limit_changes(runtime(), by)
    with teams.addressed():
        team_admin.remove_member(runtime(), by, id, user_id)


@bp.get("/<row:id>/audit-logs")
@login_required()
@query_args(TeamAuditQuery)
@answers(page_of(TeamAuditItem), errors=errors.MANAGE, name="listTeamAuditEntries")
def list_entries(principal: Principal, id: int, page: Paging, **chosen: Any) -> Page:
    """List what was done to a team and its members; for its owners and administrators."""
    _allowed(principal, id, teams.require_manager)
    return audit_log.read_page_of_team(runtime(), page, _filter(id, chosen))


@bp.get("/<row:id>/audit-logs/export")
@login_required(confirmation="if_set")
@query_args(TeamAuditExportQuery)
@answers(media_type=EXPORTED, errors=errors.EXPORT, name="exportTeamAuditLog")
def export(
    principal: Principal, id: int, page: Paging, kind: ExportFormat, **chosen: Any
) -> Response:
    """Return what was done to a team as a file; for its owners and administrators.

    Without the network addresses and browsers of those who did it. The export is recorded.
    """
    by = _allowed(principal, id, teams.require_manager)
    return attachment(by, page, _filter(id, chosen), kind)


def _allowed(principal: Principal, team_id: int, rule: Rule) -> Operator:
    return own_teams.allowed(runtime(), principal, client(), team_id, rule)


def _filter(team_id: int, chosen: dict[str, Any]) -> EntryFilter:
    return EntryFilter(entity_type=EntityType.TEAM, entity_id=team_id, **chosen)
