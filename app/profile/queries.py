"""Statements on profiles."""

from datetime import datetime
from typing import Any

from sqlalchemy import bindparam
from sqlalchemy.orm import Session

from app.core.database.prepared import chosen, per_database
from app.users.models import AvatarSource, UserProfile


def _set_display_name(insert: Any) -> Any:
    statement = insert(UserProfile).values(
        user_id=bindparam("user_id"),
        display_name=bindparam("display_name"),
        avatar_source=AvatarSource.NONE,
        avatar_version=0,
        created_at=bindparam("now"),
        updated_at=bindparam("now"),
    )
    return statement.on_conflict_do_update(
        index_elements=[UserProfile.user_id],
        set_={"display_name": bindparam("display_name"), "updated_at": bindparam("now")},
    )


_SET_DISPLAY_NAME = per_database(_set_display_name)


def set_display_name(session: Session, user_id: int, name: str | None, now: datetime) -> None:
    """Store the name; None clears it. The avatar and its version are left unchanged."""
    values = {"user_id": user_id, "display_name": name, "now": now}
    session.execute(chosen(session, _SET_DISPLAY_NAME), values)
