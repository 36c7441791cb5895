"""Ids as somebody types them."""

LONGEST_ID = 18  # digits; always fits in 64 bits


def typed_id(text: str) -> int | None:
    """Return the id that `text` spells; None when it cannot be one."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= LONGEST_ID:
        return int(text)
    return None
