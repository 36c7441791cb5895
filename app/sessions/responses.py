"""The wire form of a session (spec 01 §7.4)."""

from typing import Any

from app.web.schema import timestamp


def session_item(row: Any, *, is_current: bool) -> dict[str, Any]:
    """Return one entry of the session list."""
    return {
        "id": row.id,
        "is_current": is_current,
        "ip_address": row.ip_address,
        "user_agent": row.user_agent,
        "created_at": timestamp(row.created_at),
        "last_seen_at": timestamp(row.last_seen_at),
        "expires_at": timestamp(row.expires_at),
    }
