"""Row ids as they are written in URL paths and typed on the command line."""

MAX_ID_DIGITS = 18  # digits; always fits in 64 bits


def parsed_id(text: str) -> int | None:
    """Return the id that `text` is the canonical spelling of; None if it is none."""
    return None if text.startswith("0") else _number(text)


def typed_id(text: str) -> int | None:
    """Return an id typed on the command line, leading zeros allowed; None if it is none."""
    return _number(text.strip())


def _number(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS:
        return int(text)
    return None
