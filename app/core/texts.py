"""Texts that came from outside, made safe for where they go."""


def one_line(text: str) -> str:
    """Return a text as one line without control characters: safe in a header and in a log."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())
