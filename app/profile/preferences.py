"""Preferences as they are stored and as they are shown (spec 04 §2)."""

import json
import logging
from typing import Any

log = logging.getLogger(__name__)

BUILT_IN = (
    "theme_mode",
    "color_preset",
    "view_mode",
    "browser_open_mode",
    "sort_by",
    "sort_order",
    "language",
    "display_time_zone",
    "storage_event_stream_enabled",
)


def shown(stored: str | None) -> dict[str, Any] | None:
    """Return the wire form of the stored JSON; None when nothing is set or it cannot be read."""
    values = _parsed(stored) if stored else {}
    built_in = {name: values.get(name) for name in BUILT_IN}
    custom = {name: value for name, value in values.items() if name not in BUILT_IN}
    if not custom and all(value is None for value in built_in.values()):
        return None
    return {**built_in, **({"custom": custom} if custom else {})}


def _parsed(stored: str) -> dict[str, Any]:
    try:
        values = json.loads(stored)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        log.warning("stored preferences are not a JSON object and were ignored")
        return {}
    return values
