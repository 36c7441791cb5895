"""/teams: those of the caller; what members do with one is in `own_teams`."""

from flask import Blueprint

from app.core.access import Principal, Program, Scope
from app.teams import queries
from app.teams.models import OwnTeam
from app.teams.schemas import OwnTeamItem, OwnTeamsSchema
from app.web.guards import login_required
from app.web.operation import answers
from app.web.request import query_args
from app.web.runtime import runtime

bp = Blueprint("teams", __name__, url_prefix="/api/v1/teams")


@bp.get("")
@login_required(opened_by=Scope.PROFILE_READ)
@query_args(OwnTeamsSchema)
@answers(OwnTeamItem(many=True), name="listTeams")
def list_teams(
    principal: Principal | Program, archived: bool, keyword: str | None, limit: int, offset: int
) -> list[OwnTeam]:
    """List the teams that the account is a member of: the archived ones, or the others."""
    with runtime().reading() as session:
        return queries.list_own(
            session,
            principal.user_id,
            archived=archived,
            keyword=keyword,
            limit=limit,
            offset=offset,
        )
