"""Use cases of the account's own profile and preferences."""

from enum import StrEnum
from typing import Any

from app.audit.models import Action
from app.core.access import Principal, Program
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.texts import has_controls
from app.profile import preferences
from app.profile.errors import DisplayNameInvalid, FieldGroupUnknown
from app.sessions import service as sessions
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account

MAX_DISPLAY_NAME_LENGTH = 64


class FieldGroup(StrEnum):
    """A selectable part of the current-user model."""

    PROFILE = "profile"
    PREFERENCES = "preferences"
    QUOTA = "quota"
    SESSION = "session"


ALL_GROUPS = frozenset(FieldGroup)


def selected_groups(fields: str | None) -> frozenset[FieldGroup]:
    """Return the groups in a comma-separated list; all of them if it names none.

    Raises: FieldGroupUnknown.
    """
    if not fields:
        return ALL_GROUPS
    names = {name for part in fields.split(",") if (name := part.strip().lower())}
    try:
        return frozenset(map(FieldGroup, names)) or ALL_GROUPS
    except ValueError:
        raise FieldGroupUnknown from None


def update_profile(
    rt: Runtime, principal: Principal | Program, *, display_name: str | None, client: Client
) -> Account:
    """Change the display name and return the account; None changes nothing, empty text clears it.

    Raises: DisplayNameInvalid; AccountDisabled or TokenInvalid if the account was disabled or the
    session ended in the meantime.
    """
    name = None if display_name is None else _normalised(display_name)
    now = rt.clock.now()
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        if display_name is not None and name != account.display_name:
            users_queries.set_display_name(session, account.id, name, now)
        details = {} if display_name is None else {"display_name": name}
        users.record(rt, session, Action.USER_UPDATE_PROFILE, account, client, details)
        return users.get(session, account.id)


def update_preferences(
    rt: Runtime, principal: Principal | Program, changes: dict[str, Any], client: Client
) -> str | None:
    """Merge a change into the preferences and return them in their stored form.

    Concurrent changes are serialised by the account's lock, so none overwrites another's keys.
    Raises: errors.PREFERENCES; AccountDisabled or TokenInvalid if the account was disabled or the
    session ended in the meantime.
    """
    change = preferences.validate_change(**changes)
    now = rt.clock.now()
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        merged = change.merged_into(account.preferences)
        if merged != account.preferences:
            users_queries.set_columns(session, account.id, now, preferences=merged)
        details = {
            "changed_fields": list(change.built_in),
            "custom_upsert_count": len(change.custom),
            "custom_remove_count": len(change.removed),
        }
        users.record(rt, session, Action.USER_UPDATE_PREFERENCES, account, client, details)
    return merged


def _normalised(typed: str) -> str | None:
    """Return the name to store; None if it is blank."""
    name = typed.strip()
    if len(name) > MAX_DISPLAY_NAME_LENGTH or has_controls(name):
        raise DisplayNameInvalid
    return name or None
