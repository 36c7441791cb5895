"""Preferences: how changes are validated and merged, stored and presented.

They are stored as one flat JSON object, custom keys beside the built-in ones. Which languages and
time zones there are comes from pinned packages, so every instance accepts the same, whether or not
its system has a time zone database.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langcodes.tag_parser import LanguageTagError, parse_tag

from app.core.texts import is_storable, is_time_zone
from app.profile.errors import CustomPreferencesInvalid, PreferenceInvalid, PreferencesTooLarge
from app.users.stored_preferences import parsed

BUILT_IN = (
    "theme_mode",
    "color_preset",
    "view_mode",
    "browser_open_mode",
    "sort_by",
    "sort_order",
    "language",
    "display_time_zone",
    "storage_event_stream_enabled",
)
CHOICES = {
    "theme_mode": ("system", "light", "dark"),
    "view_mode": ("list", "grid"),
    "browser_open_mode": ("single_click", "double_click"),
    "sort_by": ("name", "size", "created_at", "updated_at", "type"),
    "sort_order": ("asc", "desc"),
}
OLD_COLOR_NAMES = {
    "blue": "#2563eb",
    "green": "#16a34a",
    "purple": "#9333ea",
    "orange": "#f97316",
}
# All of it is loaded with every request of the account, and JSON encoding recurses into values.
MAX_STORED_BYTES = 1024 * 1024
MAX_CUSTOM_DEPTH = 32
_COLOR = re.compile(r"#[0-9a-f]{6}")
MAX_LANGUAGE_TAG_LENGTH = 255
BROWSER_ZONE = "browser"
_TAG_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


@dataclass(frozen=True)
class Change:
    """A validated change: values to set and custom keys to remove; built by `validate_change`."""

    built_in: Mapping[str, Any] = field(default_factory=dict)
    custom: Mapping[str, Any] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    def merged_into(self, stored: str | None) -> str | None:
        """Return what to store in place of `stored`; None if no preference is left.

        Raises: PreferencesTooLarge.
        """
        values = parsed(stored)
        merged = {**values, **self.built_in, **self.custom}
        merged = {name: value for name, value in merged.items() if name not in self.removed}
        if _is_same_json(merged, values):
            return stored
        if not merged:
            return None
        text = json.dumps(merged, ensure_ascii=False, separators=(",", ":"))
        if not is_storable(text):  # surrogates written by something other than this module
            text = json.dumps(merged, separators=(",", ":"))
        if len(text.encode()) > max(MAX_STORED_BYTES, len((stored or "").encode())):
            raise PreferencesTooLarge
        return text


def validate_change(
    *, custom: Mapping[str, Any], remove_custom_keys: Sequence[str], **built_in: Any
) -> Change:
    """Validate a whole request before any of it is stored; a built-in of None is left unchanged.

    Raises: PreferenceInvalid, CustomPreferencesInvalid.
    """
    given = {name: value for name, value in built_in.items() if value is not None}
    removed = frozenset(map(_custom_key, remove_custom_keys))
    return Change(
        built_in=_built_in_values(given),
        custom=_custom_values(custom, removed),
        removed=removed,
    )


def to_wire(stored: str | None) -> dict[str, Any] | None:
    """Return the wire form of the stored JSON; None if nothing is set or it cannot be parsed."""
    complete = to_wire_complete(stored)
    return complete if any(value is not None for value in complete.values()) else None


def to_wire_complete(stored: str | None) -> dict[str, Any]:
    """Return the wire form with every built-in key, set or not; `custom` only if there is any."""
    values = parsed(stored)
    built_in = {name: values.get(name) for name in BUILT_IN}
    color = built_in["color_preset"]
    if isinstance(color, str):
        built_in["color_preset"] = OLD_COLOR_NAMES.get(color, color.lower())
    custom = {name: value for name, value in values.items() if name not in BUILT_IN}
    return {**built_in, **({"custom": custom} if custom else {})}


def _built_in_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values to store; one PreferenceInvalid reports all that are not allowed."""
    values, faults = {}, []
    for name, value in given.items():
        try:
            values[name] = _built_in_value(name, value)
        except PreferenceInvalid as fault:
            faults.append(fault.public_message)
    if faults:
        raise PreferenceInvalid("; ".join(faults))
    return values


def _built_in_value(name: str, value: Any) -> Any:
    if name in CHOICES and value not in CHOICES[name]:
        raise PreferenceInvalid(f"{name} must be one of {', '.join(CHOICES[name])}")
    if name == "color_preset":
        return _color(value)
    try:
        if name == "language":
            return _language_tag(value.strip())
        if name == "display_time_zone":
            return _time_zone(value.strip())
    except ValueError as error:
        raise PreferenceInvalid(f"{name} {error}") from None
    return value


def _color(text: str) -> str:
    color = OLD_COLOR_NAMES.get(text.strip(), text.strip().lower())
    if not _COLOR.fullmatch(color):
        raise PreferenceInvalid("color_preset must be a color such as #2563eb")
    return color


def _language_tag(text: str) -> str:
    """Return a well-formed BCP 47 tag in its canonical case, whether registered or not.

    Raises: ValueError.
    Source: RFC 5646 §2.1.1, §2.2.9.
    """
    # langcodes accepts underscores for hyphens, and digits in a language; RFC 5646 does not.
    if not text or len(text) > MAX_LANGUAGE_TAG_LENGTH or not set(text) <= _TAG_CHARACTERS:
        raise ValueError("is not a language tag")
    try:
        subtags = parse_tag(text)  # type: ignore[no-untyped-call]
    except LanguageTagError:
        raise ValueError("is not a language tag") from None
    _require_no_repetition(subtags)
    kind, first = subtags[0]
    languages = [subtag for kind, subtag in subtags if kind in {"language", "extlang"}]
    # Four-letter languages are reserved; longer ones must be registered, and none is (§2.2.1).
    if "-" not in first and not all(name.isalpha() and len(name) <= 3 for name in languages):
        raise ValueError("is not a language tag")
    if kind == "grandfathered":
        return _grandfathered(first)
    return "-".join(subtag for _, subtag in subtags)


def _time_zone(text: str) -> str:
    """Return `text` if it is the exact name of an IANA time zone or `browser` (the client's zone).

    Raises: ValueError.
    """
    if text != BROWSER_ZONE and not is_time_zone(text):
        raise ValueError("is not an IANA time zone")
    return text


def _require_no_repetition(subtags: list[tuple[str, str]]) -> None:
    """Refuse a variant or an extension singleton that occurs twice (RFC 5646 §2.2.9)."""
    singular = [
        (kind, subtag if kind == "variant" else subtag[0])
        for kind, subtag in subtags
        if kind in {"variant", "extension"}
    ]
    if len(set(singular)) < len(singular):
        raise ValueError("repeats a subtag")


def _grandfathered(tag: str) -> str:
    """Return a grandfathered tag with each subtag in the case of RFC 5646 §2.1.1."""
    first, *others = tag.split("-")
    cased = [other.upper() if len(other) == 2 else other for other in others]
    return "-".join([first, *(cased if len(first) > 1 else others)])


def _custom_values(custom: Mapping[str, Any], removed: frozenset[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for typed, value in custom.items():
        key = _custom_key(typed)
        if key in values:
            raise CustomPreferencesInvalid("custom names a key twice")
        if key in removed:
            raise CustomPreferencesInvalid("a custom key is both set and removed")
        _require_storable(value, MAX_CUSTOM_DEPTH)
        values[key] = value
    return values


def _custom_key(typed: str) -> str:
    key = typed.strip()
    if not key or not is_storable(key):
        raise CustomPreferencesInvalid("a custom key is empty or cannot be stored")
    if key in BUILT_IN:
        raise CustomPreferencesInvalid(f"{key} is not a custom key")
    return key


def _require_storable(value: Any, levels_left: int) -> None:
    """Refuse what would not round-trip: deep nesting, NUL, unpaired surrogates, infinity."""
    if isinstance(value, dict | list) and not levels_left:
        raise CustomPreferencesInvalid(
            f"custom values may be nested {MAX_CUSTOM_DEPTH} levels deep"
        )
    if isinstance(value, str) and not is_storable(value):
        raise CustomPreferencesInvalid("a custom text has NUL or unpaired surrogates")
    if isinstance(value, float) and not math.isfinite(value):
        raise CustomPreferencesInvalid("a custom number is too large")
    if isinstance(value, dict):
        for name, member in value.items():
            _require_storable(name, levels_left)
            _require_storable(member, levels_left - 1)
    elif isinstance(value, list):
        for member in value:
            _require_storable(member, levels_left - 1)


def _is_same_json(one: Any, other: Any) -> bool:
    """Compare as JSON, which tells 1 from true; in Python they are equal."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
