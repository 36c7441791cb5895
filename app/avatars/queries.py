"""Statements on avatars."""

from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.core.database.prepared import chosen, per_database
from app.users.models import AvatarSource, UserProfile


def _publish(insert: Any) -> Any:
    changed = {
        "avatar_source": AvatarSource.UPLOADED,
        "avatar_key": bindparam("key"),
        "avatar_version": bindparam("seen") + 1,
        "updated_at": bindparam("now"),
    }
    return _upsert(insert, changed, UserProfile.avatar_version == bindparam("seen"))


def _set_source(insert: Any) -> Any:
    changed = {
        "avatar_source": bindparam("source"),
        "avatar_version": UserProfile.avatar_version + 1,
        "updated_at": bindparam("now"),
    }
    return _upsert(insert, changed, UserProfile.avatar_source != bindparam("source"))


def _upsert(insert: Any, changed: dict[str, Any], condition: Any) -> Any:
    """Insert a row with version 1, or update the existing one if it meets the condition."""
    first = {name: changed[name] for name in ("avatar_source", "updated_at")}
    if "avatar_key" in changed:
        first["avatar_key"] = changed["avatar_key"]
    return (
        insert(UserProfile)
        .values(
            user_id=bindparam("user_id"), avatar_version=1, created_at=bindparam("now"), **first
        )
        .on_conflict_do_update(index_elements=[UserProfile.user_id], set_=changed, where=condition)
        .returning(UserProfile.avatar_version)
    )


_PUBLISH = per_database(_publish)
_SET_SOURCE = per_database(_set_source)


def publish(session: Session, user_id: int, seen: int, key: str, now: datetime) -> int | None:
    """Make `key` the account's avatar and return the new version.

    Optimistic locking: return None and change nothing if the version is no longer `seen` (0 if
    there was no row). A single statement, so of concurrent uploads exactly one is published.
    """
    values = {"user_id": user_id, "seen": seen, "key": key, "now": now}
    return session.execute(chosen(session, _PUBLISH), values).scalar_one_or_none()


def set_source(session: Session, user_id: int, source: AvatarSource, now: datetime) -> bool:
    """Change the avatar's source and increment its version; False if the source is the same.

    Without a row the source is `none` already, but setting `none` would insert one: don't.
    """
    values = {"user_id": user_id, "source": source, "now": now}
    return session.execute(chosen(session, _SET_SOURCE), values).scalar_one_or_none() is not None


def list_keys(reader: Session, user_ids: list[int]) -> dict[int, str]:
    """Return the avatar keys by account id, for those of these accounts that have one."""
    statement = select(UserProfile.user_id, UserProfile.avatar_key).where(
        UserProfile.user_id.in_(user_ids), UserProfile.avatar_key.is_not(None)
    )
    return {row[0]: str(row[1]) for row in reader.execute(statement)}
