"""The kinds of runtime settings: how each is parsed from stored text, validated and rendered."""

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from app.core.parsing import Bounds, one_of, parse_size, switch
from app.core.setting_groups import Group
from app.core.texts import has_controls

T = TypeVar("T")

log = logging.getLogger(__name__)

DAY = 86_400
# Up to here every integer is exact in a double, which is how many JSON readers store numbers.
MAX_EXACT_INTEGER = 2**53

ValueType = Literal["boolean", "number", "string", "multiline", "string_array", "string_enum_set"]
# What the entries of a list are.
ItemKind = Literal["origin", "email_or_domain", "text"]


@dataclass(frozen=True)
class Key(Generic[T]):
    """One setting. `parse` reads stored text, `render` validates a new value and returns its text.

    Both raise ValueError; stored text that does not parse counts as not set.
    `meaning` says what it decides, `takes` which values it accepts, both without a full stop. The
    members from `options` to `item_kind` say the same to programs, as far as they apply.
    `is_public`: what visitors see depends on it. `is_guarded`: to change it takes a recent
    confirmation, as for every sensitive one. `notice` is what it switches, in the words of a mail
    to administrators; "" if they are not notified.
    """

    group: Group
    name: str
    meaning: str
    takes: str
    value_type: ValueType
    default: T
    parse: Callable[[str], T]
    render: Callable[[object], str]
    is_sensitive: bool = False
    options: tuple[str, ...] = ()
    unit: str = ""
    minimum: int | None = None
    maximum: int | None = None
    max_length: int | None = None
    item_kind: ItemKind | None = None
    is_public: bool = False
    is_guarded: bool = False
    notice: str = ""

    @property
    def description(self) -> str:
        """Return the meaning and the accepted values in one line."""
        return f"{self.meaning} ({self.takes})"

    def value_of(self, stored: str | None) -> T:
        """Return the effective value, given the stored text, or None if nothing is stored."""
        if stored is None:
            return self.default
        try:
            return self.parse(stored)
        except ValueError:
            return self.default


def boolean(group: Group, name: str, meaning: str, *, default: bool, **about: Any) -> Key[bool]:
    """Return a switch; `about` are further members of the key."""

    def render(value: object) -> str:
        text = _as_text(value)
        if not group.takes_words and text not in {"true", "false"}:
            raise ValueError("must be true or false")
        return _as_text(switch(text))

    return Key(group, name, meaning, "true or false", "boolean", default, switch, render, **about)


def number(
    group: Group,
    name: str,
    meaning: str,
    default: int,
    *,
    unit: str = "",
    least: int = 1,
    most: int = MAX_EXACT_INTEGER,
    is_off_at_zero: bool = False,
    **about: Any,
) -> Key[int]:
    """Return a whole number of `unit` within bounds; a stored value outside them is ignored.

    With `is_off_at_zero`, 0 is taken whatever the bounds.
    """
    bounds = Bounds(least, most, is_off_at_zero)

    def render(value: object) -> str:
        text = _as_text(value)
        if unit == "bytes" and not text.strip().startswith("-"):
            text = str(parse_size(text))
        return str(bounds.read(text))

    zero = "0, or " if is_off_at_zero else ""
    numbers = f"{least} or more" if most == MAX_EXACT_INTEGER else f"{least} to {most}"
    takes = f"{zero}{numbers} {unit}".rstrip()
    if unit == "bytes":
        takes += ", or with a unit such as MB or MiB"
    about |= {
        "unit": unit,
        "minimum": 0 if is_off_at_zero else least,
        "maximum": most,
    }
    return Key(group, name, meaning, takes, "number", default, bounds.read, render, **about)


def seconds(
    group: Group, name: str, meaning: str, default: int, *, least: int = 1, most: int = DAY
) -> Key[int]:
    """Return a number of seconds, by default of up to a day."""
    return number(group, name, meaning, default, unit="seconds", least=least, most=most)


def text(
    group: Group,
    name: str,
    meaning: str,
    default: str = "",
    *,
    max_length: int = 2048,
    multiline: bool = False,
    is_sensitive: bool = False,
    check: Callable[[str], str] = str,
    **about: Any,
) -> Key[str]:
    """Return a text; `check` returns the normalized value or raises ValueError."""

    def render(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a string")  # noqa: TRY004 - a bad value, not a bug
        value = value if multiline or is_sensitive else value.strip()
        if len(value) > max_length:
            raise ValueError(f"must be at most {max_length} characters long")
        if has_controls(value, allowed="\r\n\t" if multiline else ""):
            raise ValueError("must not contain control characters")
        if is_sensitive and not value.isprintable():  # pasted in unnoticed
            raise ValueError("must not contain invisible characters")
        return check(value)

    kind: ValueType = "multiline" if multiline else "string"
    takes = f"{'lines of text' if multiline else 'text'}, at most {max_length} characters"
    takes += ", never shown" if is_sensitive else ""
    about |= {"is_sensitive": is_sensitive, "max_length": max_length}
    return Key(group, name, meaning, takes, kind, default, str, render, **about)


def choice(
    group: Group,
    name: str,
    meaning: str,
    default: str,
    options: tuple[str, ...],
    *,
    is_switch: bool = False,
    **about: Any,
) -> Key[str]:
    """Return one of a few words: a string with options.

    `is_switch` also accepts the other words for true and false.
    """

    def parse(text: str) -> str:
        word = text.strip().lower()
        if is_switch:
            with suppress(ValueError):
                word = _as_text(switch(word))
        return one_of(word, options)

    def render(value: object) -> str:
        return parse(_as_text(value))

    takes = f"{', '.join(options[:-1])} or {options[-1]}"
    return Key(
        group, name, meaning, takes, "string", default, parse, render, options=options, **about
    )


def text_list(
    group: Group,
    name: str,
    meaning: str,
    normalize: Callable[[str], str],
    *,
    example: tuple[str, ...],
    default: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
    in_order: bool = False,
    refuses_duplicates: bool = False,
    least: int = 0,
    most: int = MAX_EXACT_INTEGER,
    item_kind: ItemKind = "text",
    **about: Any,
) -> Key[tuple[str, ...]]:
    """Return a list of `least` to `most` strings without duplicates, sorted unless `in_order`.

    `options` names all entries that `normalize` accepts, if they are known; the list is then a set
    of these. `example` is shown to whoever has to write one. If `normalize` refuses an entry
    (ValueError), a new list is refused as a whole; in a stored list that entry is skipped.
    """
    takes = f"a JSON list of strings, such as {json.dumps(example)}"

    def arranged(entries: list[str]) -> tuple[str, ...]:
        distinct = dict.fromkeys(entries)
        return tuple(distinct if in_order else sorted(distinct))

    def parse(text: str) -> tuple[str, ...]:
        kept = []
        for entry in _entries(text, takes):
            try:
                kept.append(normalize(entry.strip()))
            except (AttributeError, ValueError):
                log.warning("a stored list entry is not valid and was skipped")
        return arranged(kept)

    def render(value: object) -> str:
        entries = _entries(value, takes)
        if not all(isinstance(entry, str) for entry in entries):
            raise ValueError(f"must be {takes}")
        kept = [normalize(entry.strip()) for entry in entries if entry.strip()]
        if refuses_duplicates and len(set(kept)) != len(kept):
            raise ValueError("must not name anything twice")
        _check_count(kept, least, most)
        return json.dumps(arranged(kept))

    kind: ValueType = "string_enum_set" if options else "string_array"
    about |= {"options": options, "item_kind": item_kind}
    return Key(group, name, meaning, takes, kind, default, parse, render, **about)


def _entries(value: object, takes: str) -> list[Any]:
    with suppress(ValueError, RecursionError):
        entries = json.loads(value) if isinstance(value, str) else value
        if isinstance(entries, list | tuple):
            return list(entries)
    raise ValueError(f"must be {takes}")


def _check_count(entries: list[str], least: int, most: int) -> None:
    if not least <= len(entries) <= most:
        raise ValueError(f"must have {least} to {most} entries")


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | str):
        return str(value)
    raise ValueError("must be a single value")
