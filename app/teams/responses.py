"""JSON representation of a team (spec 04 §5.5; decisions, section C)."""

from typing import Any

from app.teams.queries import Member, TeamInfo
from app.web.schema import timestamp


def team(info: TeamInfo) -> dict[str, Any]:
    """Represent a team."""
    return {
        **info._asdict(),
        "created_at": timestamp(info.created_at),
        "updated_at": timestamp(info.updated_at),
        "archived_at": timestamp(info.archived_at),
    }


def member(found: Member) -> dict[str, Any]:
    """Represent a member of a team."""
    return {**found._asdict(), "created_at": timestamp(found.created_at)}
