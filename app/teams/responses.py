"""The wire form of a team (spec 04 §5.5; decisions, section C)."""

from typing import Any

from app.teams.queries import TeamInfo
from app.web.schema import timestamp


def team(info: TeamInfo) -> dict[str, Any]:
    """Return one team."""
    return {
        **info._asdict(),
        "created_at": timestamp(info.created_at),
        "updated_at": timestamp(info.updated_at),
        "archived_at": timestamp(info.archived_at),
    }
