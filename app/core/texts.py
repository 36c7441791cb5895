"""Texts that came from outside, made safe for where they go."""


def is_storable(text: str) -> bool:
    """Tell whether every store can hold it: no NUL, no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def one_line(text: str) -> str:
    """Return a text as one line without control characters: safe in a header and in a log."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())
