"""Texts that came from outside, made safe for where they go."""

import unicodedata


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
