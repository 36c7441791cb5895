"""The current-user model (spec 01 §5)."""

from typing import Any

from app.core.access import Principal
from app.core.runtime import Runtime
from app.profile import preferences
from app.profile.field_groups import FieldGroup
from app.users import responses as users


def me(
    rt: Runtime, principal: Principal, stored_preferences: str | None, groups: frozenset[FieldGroup]
) -> dict[str, Any]:
    """Return the account with the members of the selected groups only."""
    account = principal.account
    model = users.base(account)
    if FieldGroup.QUOTA in groups:
        model |= users.quota(account)
    if FieldGroup.PROFILE in groups:
        model["profile"] = users.profile(rt, account)
    if FieldGroup.SESSION in groups:
        model["access_token_expires_at"] = principal.token_expires_at
    if FieldGroup.PREFERENCES in groups:
        model["preferences"] = preferences.to_wire(stored_preferences)
    return model
