"""/auth/me."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.profile import field_groups, responses
from app.profile.errors import FieldGroupUnknown
from app.profile.schemas import MeData, MeQuerySchema
from app.web.envelope import ok
from app.web.operation import answers
from app.web.principal import Principal, login_required
from app.web.request import query_args
from app.web.runtime import runtime

bp = Blueprint("profile", __name__, url_prefix="/api/v1/auth")


@bp.get("/me")
@login_required(during_password_change=True)
@query_args(MeQuerySchema)
@answers(MeData(), errors=(FieldGroupUnknown,))
def me(principal: Principal, query: dict[str, Any]) -> ResponseReturnValue:
    """Return the signed-in account, whole or the groups named in `fields`."""
    groups = field_groups.selected(query["fields_"])
    return ok(responses.me(runtime(), principal, principal.account.preferences, groups))
