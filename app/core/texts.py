"""Texts that came from outside, made safe for where they go."""

import difflib
import unicodedata
from collections.abc import Iterable

_MAX_SUGGESTED, _LEAST_TYPED = 3, 3
_LONGEST = 80


def is_storable(text: str) -> bool:
    """Tell whether every store can hold it: no NUL, no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def is_control(character: str) -> bool:
    """Tell whether it is a control character, or half of a surrogate pair.

    Unlike `str.isprintable` this lets pass what ordinary text has: no-break spaces, joiners.
    """
    return unicodedata.category(character) in {"Cc", "Cs"}


def has_controls(text: str, *, allowed: str = "") -> bool:
    """Tell whether there is a control character in a text, or half of a surrogate pair."""
    return any(is_control(character) and character not in allowed for character in text)


def one_line(text: str) -> str:
    """Return a text as one line without control characters: safe in a header and in a log."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())


def counted(number: int, one: str, many: str) -> str:
    """Return a number with the word, or the words, that go with it."""
    return f"{number} {one if number == 1 else many}"


def whole_number(text: str) -> int | None:
    """Return the number that ASCII digits say, below zero with a hyphen; None if it is none.

    More than 19 digits are none either: no store holds them.
    """
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 20
    return int(text) if is_number else None


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Return the sentence that ends a complaint about a misspelt word, after a space; or ""."""
    meant = suggestion(typed, known)
    return f" Did you mean {meant}?" if meant else ""


def shortened(typed: str) -> str:
    """Return what somebody typed as a message can repeat it, however long it is."""
    text = one_line(typed) or '""'
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def suggestion(typed: str, known: Iterable[str]) -> str:
    """Return which known words may be meant by a misspelt one, as "this" or "this or that"; or "".

    A word is near by its letters, or has the whole of what was typed in it.
    """
    names = sorted(known)
    near = difflib.get_close_matches(typed, names, _MAX_SUGGESTED)
    if not near and len(typed) >= _LEAST_TYPED:
        near = [name for name in names if typed.lower() in name.lower()][:_MAX_SUGGESTED]
    return " or ".join(near)
