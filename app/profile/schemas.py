"""Schemas of /auth/me, /auth/profile and /auth/preferences."""

from functools import cache
from typing import Any

from marshmallow import fields, validate

from app.core.access import Principal, Program, Scope
from app.profile import preferences
from app.profile.preferences import CHOICES
from app.profile.service import MAX_DISPLAY_NAME_LENGTH, FieldGroup
from app.users.models import Account
from app.users.schemas import AccountBase, ProfileInfo
from app.web.schema import (
    Answer,
    Part,
    RequestSchema,
    StrictBoolean,
    Text,
    Word,
    example_metadata,
)

GROUP = "|".join(FieldGroup)


class MeQuerySchema(RequestSchema):
    """Which groups to return; none named means all."""

    fields_ = Text(
        data_key="fields",
        load_default=None,
        metadata={
            "description": f"comma-separated: {', '.join(FieldGroup)}",
            "pattern": f"^(({GROUP})(,({GROUP}))*)?$",
        },
    )


class UpdateProfileSchema(RequestSchema):
    """PATCH /auth/profile. Absent or null changes nothing; an empty text clears it."""

    display_name = Text(
        load_default=None,
        allow_none=True,
        metadata={"maxLength": MAX_DISPLAY_NAME_LENGTH},
    )


def _text(description: str) -> Text:
    return Text(load_default=None, allow_none=True, metadata={"description": description})


def _choice(name: str) -> Text:
    one_of = {"enum": [*CHOICES[name], None], "examples": [CHOICES[name][0]]}
    return Text(load_default=None, allow_none=True, metadata=one_of)


class UpdatePreferencesSchema(RequestSchema):
    """PATCH /auth/preferences. A built-in key that is absent or null stays as it is."""

    theme_mode = _choice("theme_mode")
    color_preset = _text("#rrggbb, or blue, green, purple, orange")
    view_mode = _choice("view_mode")
    browser_open_mode = _choice("browser_open_mode")
    sort_by = _choice("sort_by")
    sort_order = _choice("sort_order")
    language = _text("a BCP 47 tag")
    display_time_zone = _text("an IANA time zone, or browser")
    storage_event_stream_enabled = StrictBoolean(load_default=None, allow_none=True)
    custom = fields.Dict(
        load_default=dict, metadata={"description": "keys to set, each to any JSON value"}
    )
    remove_custom_keys = fields.List(Text(), load_default=list)


def _chosen(name: str) -> fields.String:
    return fields.String(allow_none=True, validate=validate.OneOf(CHOICES[name]))


class Preferences(Answer):
    """Every built-in preference, null while unset; `custom` is there only if any are set."""

    optional = frozenset({"custom"})

    theme_mode = _chosen("theme_mode")
    color_preset = fields.String(allow_none=True)
    view_mode = _chosen("view_mode")
    browser_open_mode = _chosen("browser_open_mode")
    sort_by = _chosen("sort_by")
    sort_order = _chosen("sort_order")
    language = fields.String(allow_none=True)
    display_time_zone = fields.String(allow_none=True)
    storage_event_stream_enabled = fields.Boolean(allow_none=True)
    custom = fields.Dict(keys=fields.String())


class OwnPreferences(fields.Nested):
    """The preferences of an account; null if it has set none."""

    def get_value(self, obj: Account, *_: Any, **__: Any) -> dict[str, Any] | None:
        """Return what the account has stored."""
        return preferences.to_wire(obj.preferences)


class PresentedToken(Answer):
    """The access token that a request was made with."""

    id = fields.Integer()
    name = fields.String(metadata=example_metadata("Nightly backup"))
    scopes = fields.List(Word(Scope))


class MeData(AccountBase):
    """The account; a group that was not asked for is absent.

    `token` is there only for a program, whose access token may be one that never expires.
    """

    optional = frozenset(
        {
            "storage_used",
            "storage_quota",
            "profile",
            "access_token_expires_at",
            "token",
            "preferences",
        }
    )

    storage_used = fields.Integer()
    storage_quota = fields.Integer()
    profile = Part(ProfileInfo)
    access_token_expires_at = fields.Integer(allow_none=True)
    token = fields.Nested(PresentedToken)
    preferences = OwnPreferences(Preferences, allow_none=True)


@cache
def me_schema(groups: frozenset[FieldGroup]) -> MeData:
    """Return the schema of an answer to who asked for these groups only."""
    members = {
        FieldGroup.QUOTA: ("storage_used", "storage_quota"),
        FieldGroup.PROFILE: ("profile",),
        FieldGroup.SESSION: ("access_token_expires_at", "token"),
        FieldGroup.PREFERENCES: ("preferences",),
    }
    left_out = [name for group, names in members.items() if group not in groups for name in names]
    return MeData(exclude=left_out)


_presented_token = PresentedToken()


def session_of(caller: Principal | Program) -> dict[str, Any]:
    """Return the group `session`: when the presented token expires, and which one a program has."""
    if isinstance(caller, Principal):
        return {"access_token_expires_at": caller.token_expires_at}
    expires_at = caller.token.expires_at
    return {
        "access_token_expires_at": expires_at and int(expires_at.timestamp()),
        "token": _presented_token.dump(caller.token),
    }
