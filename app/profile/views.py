"""/auth/me, /auth/profile and /auth/preferences."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.core.access import Principal
from app.profile import field_groups, preferences, responses, service
from app.profile.errors import (
    CustomPreferencesInvalid,
    DisplayNameInvalid,
    FieldGroupUnknown,
    PreferenceInvalid,
    PreferencesTooLarge,
)
from app.profile.schemas import (
    MeData,
    MeQuerySchema,
    Preferences,
    UpdatePreferencesSchema,
    UpdateProfileSchema,
)
from app.users import responses as users
from app.users.schemas import ProfileInfo
from app.web.envelope import ok
from app.web.guards import login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("profile", __name__, url_prefix="/api/v1/auth")


@bp.get("/me")
@login_required(during_password_change=True)
@query_args(MeQuerySchema)
@answers(MeData(), errors=(FieldGroupUnknown,), name="getMe")
def me(principal: Principal, query: dict[str, Any]) -> ResponseReturnValue:
    """Return the signed-in account: all of it, or the groups named in `fields`."""
    groups = field_groups.selected(query["fields_"])
    return ok(responses.me(runtime(), principal, principal.account.preferences, groups))


@bp.patch("/profile")
@login_required()
@json_body(UpdateProfileSchema)
@answers(ProfileInfo(), errors=(DisplayNameInvalid,))
def update_profile(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Change the account's display name."""
    rt = runtime()
    return ok(users.profile(rt, service.update_profile(rt, principal, **body, client=client())))


@bp.patch("/preferences")
@login_required()
@json_body(UpdatePreferencesSchema)
@answers(Preferences(), errors=(PreferenceInvalid, CustomPreferencesInvalid, PreferencesTooLarge))
def update_preferences(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Change some preferences; all others stay as they are."""
    stored = service.update_preferences(runtime(), principal, body, client())
    return ok(preferences.to_wire_complete(stored))
