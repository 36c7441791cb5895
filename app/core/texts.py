"""Text from outside, checked and made safe for where it goes; ids, origins and phrases."""

import difflib
import re
import unicodedata
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from urllib.parse import quote, urlsplit

# The list behind `zoneinfo.available_timezones`, without the zones that the system adds.
_ZONES = frozenset(resources.files("tzdata").joinpath("zones").read_text("ascii").split())
_MAX_SUGGESTED, _MIN_TYPED_LENGTH = 3, 3
MAX_SOCKET_PATH_BYTES = 107  # of sun_path, less the final zero
_MAX_SHORTENED_LENGTH = 80


class Sentence:
    """What is said in English, whose template can be translated: `{name}` stands for a value."""

    def __init__(self, template: str, /, **values: object) -> None:
        self.template = template
        self.values = {name: str(value) for name, value in values.items()}

    def __str__(self) -> str:
        return re.sub(
            r"\{(\w+)\}", lambda found: self.values.get(found[1], found[0]), self.template
        )


def is_storable(text: str) -> bool:
    """Return whether every store can hold the text: no NUL, no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def is_time_zone(text: str) -> bool:
    """Return whether it is the exact name of an IANA time zone."""
    return text in _ZONES


def is_control(character: str) -> bool:
    """Return whether it is a control character or a lone surrogate.

    Unlike `str.isprintable`, this accepts what ordinary text contains: no-break spaces, joiners.
    """
    return unicodedata.category(character) in {"Cc", "Cs"}


def has_controls(text: str, *, allowed: str = "") -> bool:
    """Return whether a text contains a control character or a lone surrogate."""
    return any(is_control(character) and character not in allowed for character in text)


def one_line(text: str) -> str:
    """Return a text as one line without control characters, safe in a header and in a log.

    A character that this Python does not know yet stays, so that every Python gives the same.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() or not _is_assigned(c) else " " for c in text)
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return the form in which texts are searched: equal for all that differ in letter case only.

    Unicode's full case folding, so that "Straße" is found as "STRASSE", of the composed form, in
    which an "ö" is one character however it was typed.
    """
    return unicodedata.normalize("NFC", text).casefold()


def _is_assigned(character: str) -> bool:
    return unicodedata.category(character) != "Cn"


def pluralized(number: int, one: str, many: str) -> str:
    """Return a number with the right word for it: `one` for 1, else `many`."""
    return f"{number} {one if number == 1 else many}"


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?", to append to a message about a misspelt word; or "".

    It names words spelt similarly or, if there are none, words that contain all that was typed.
    """
    names = sorted(known)
    near = difflib.get_close_matches(typed, names, _MAX_SUGGESTED)
    if not near and len(typed) >= _MIN_TYPED_LENGTH:
        near = [name for name in names if typed.lower() in name.lower()][:_MAX_SUGGESTED]
    return f" Did you mean {' or '.join(near)}?" if near else ""


def shortened(typed: str) -> str:
    """Return what somebody typed as one line, cut to a length that a message can repeat."""
    text = one_line(typed) or '""'
    return text if len(text) <= _MAX_SHORTENED_LENGTH else f"{text[:_MAX_SHORTENED_LENGTH]}..."


MAX_ID_DIGITS = 18  # digits; always fits in 64 bits


def parsed_id(text: str) -> int | None:
    """Return the id that `text` is the canonical spelling of; None if it is none."""
    return None if text.startswith("0") else _number(text)


def typed_id(text: str) -> int | None:
    """Return an id typed on the command line, leading zeros allowed; None if it is none."""
    return _number(text.strip())


def typed_reference(text: str) -> tuple[int | None, str | None]:
    """Return the id and the name that an operator may mean; None for what is not meant.

    `129` may be both; `id:129` and `name:129` say which.
    """
    kind, colon, rest = text.strip().partition(":")
    if colon and kind == "id":
        return _number(rest), None
    if colon and kind == "name":
        return None, rest
    return typed_id(text), text


def _number(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS:
        return int(text)
    return None


def sqlite_url(file: Path) -> str:
    """Return the URL of a database file, whatever characters its path has."""
    return f"sqlite:///{quote(str(file))}"


DEFAULT_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return the origin of a URL as browsers write it, without the scheme's default port.

    Raises: ValueError if the host or the port is malformed.
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    usual = parts.port in (None, DEFAULT_PORTS.get(parts.scheme))
    return f"{parts.scheme}://{host}" + ("" if usual else f":{parts.port}")
