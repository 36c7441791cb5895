"""/auth/me, /auth/profile and /auth/preferences."""

from typing import Any

from flask import Blueprint, Response

from app.core.access import Principal, Program, Scope
from app.profile import errors, preferences, service
from app.profile.schemas import (
    MeData,
    MeQuerySchema,
    Preferences,
    UpdatePreferencesSchema,
    UpdateProfileSchema,
    me_schema,
    session_of,
)
from app.users.models import Account
from app.users.schemas import ProfileInfo
from app.web.guards import login_required
from app.web.operation import answers, ok
from app.web.peer import client
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("profile", __name__, url_prefix="/api/v1/auth")


@bp.get("/me")
@login_required(opened_by="any", during_password_change=True)
@query_args(MeQuerySchema)
@answers(MeData(), errors=(errors.FieldGroupUnknown,), name="getMe")
def me(principal: Principal | Program, fields_: str | None) -> Response:
    """Return the signed-in account: all of it, or the groups named in `fields`.

    A program learns of its access token as well, with the group `session`.
    """
    groups = service.selected_groups(fields_)
    shown = me_schema(groups).dump(principal.account)
    if service.FieldGroup.SESSION in groups:
        shown |= session_of(principal)
    return ok(shown)


@bp.patch("/profile")
@login_required(opened_by=Scope.PROFILE)
@json_body(UpdateProfileSchema)
@answers(ProfileInfo(), errors=(errors.DisplayNameInvalid,))
def update_profile(principal: Principal | Program, display_name: str | None) -> Account:
    """Change the account's display name."""
    return service.update_profile(runtime(), principal, display_name=display_name, client=client())


@bp.patch("/preferences")
@login_required(opened_by=Scope.PROFILE)
@json_body(UpdatePreferencesSchema)
@answers(Preferences(), errors=errors.PREFERENCES)
def update_preferences(principal: Principal | Program, **changes: Any) -> dict[str, Any]:
    """Change some preferences; all others stay as they are."""
    stored = service.update_preferences(runtime(), principal, changes, client())
    return preferences.to_wire_complete(stored)
