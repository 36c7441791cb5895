"""Statements on avatars."""

from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from app.users.models import UserProfile


def change(session: Session, user_id: int, now: datetime, **columns: Any) -> None:
    """Change the avatar of an account, whose row the caller has locked."""
    values = {"updated_at": now, **columns}
    its_row = update(UserProfile).where(UserProfile.user_id == user_id)
    changed: Any = session.execute(its_row.values(values))
    if not changed.rowcount:
        session.execute(insert(UserProfile).values(user_id=user_id, created_at=now, **values))


def list_avatar_keys(session: Session, user_ids: list[int]) -> dict[int, str]:
    """Return the avatar keys by account id, for those of these accounts that have one."""
    statement = select(UserProfile.user_id, UserProfile.avatar_key).where(
        UserProfile.user_id.in_(user_ids), UserProfile.avatar_key.is_not(None)
    )
    return {row[0]: str(row[1]) for row in session.execute(statement)}
