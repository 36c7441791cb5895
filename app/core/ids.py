"""Ids as texts."""

LONGEST_ID = 18  # digits; always fits in 64 bits


def parsed_id(text: str) -> int | None:
    """Return the id that `text` spells; None when it cannot be one."""
    if text.isascii() and text.isdigit() and len(text) <= LONGEST_ID:
        return int(text)
    return None


def typed_id(text: str) -> int | None:
    """Return the id somebody typed on the command line, with white space around it or without."""
    return parsed_id(text.strip())
