"""Ids of rows as they are written in paths and on the command line."""

LONGEST_ID = 18  # digits; always fits in 64 bits


def parsed_id(text: str) -> int | None:
    """Return the id that `text` spells, which has one spelling; None when it cannot be one."""
    return None if text.startswith("0") else _number(text)


def typed_id(text: str) -> int | None:
    """Return the id somebody typed on the command line; zeros before it change nothing."""
    return _number(text.strip())


def _number(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= LONGEST_ID:
        return int(text)
    return None
