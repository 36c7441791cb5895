"""The field groups a client may select from /auth/me."""

from enum import StrEnum

from app.profile.errors import FieldGroupUnknown


class FieldGroup(StrEnum):
    """A selectable part of the current-user model."""

    PROFILE = "profile"
    PREFERENCES = "preferences"
    QUOTA = "quota"
    SESSION = "session"


ALL_GROUPS = frozenset(FieldGroup)


def selected(fields: str | None) -> frozenset[FieldGroup]:
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
