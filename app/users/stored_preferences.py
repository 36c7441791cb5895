"""What the preferences of an account are stored as: one flat JSON object."""

import json
import logging
from typing import Any

log = logging.getLogger(__name__)


def parsed(stored: str | None) -> dict[str, Any]:
    """Return the stored preferences; empty if there are none, or if they cannot be read."""
    try:
        values = json.loads(stored or "{}")
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        log.warning("stored preferences are not a JSON object and were ignored")
        return {}
    return values


def language(stored: str | None) -> str | None:
    """Return the BCP 47 tag in the stored JSON; None if there is none."""
    tag = parsed(stored).get("language")
    return tag if isinstance(tag, str) else None
