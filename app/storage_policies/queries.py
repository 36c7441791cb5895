"""Statements on policies and groups."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import ColumnElement, Row, delete, exists, func, select, update
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Reader
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup, StoragePolicyGroupItem
from app.users.models import User

Named = TypeVar("Named", StoragePolicy, StoragePolicyGroup)


def usable_default_group() -> ColumnElement[bool]:
    """Return the condition that a group is the default and can take new accounts."""
    has_items = exists().where(StoragePolicyGroupItem.group_id == StoragePolicyGroup.id)
    return StoragePolicyGroup.is_default & StoragePolicyGroup.is_enabled & has_items


# The group new accounts get, as a subquery; no row while the storage route is incomplete. The lock
# keeps it from being disabled or deleted until the transaction ends: the foreign key's own check
# would be too late to prevent the one, and would fail after the other.
DEFAULT_GROUP = (
    select(StoragePolicyGroup.id)
    .where(usable_default_group(), exists().where(StoragePolicy.is_default))
    .order_by(StoragePolicyGroup.id)
    .limit(1)
    .with_for_update(read=True, key_share=True)
    .subquery("default_group")
)


def find_default_group_id(reader: Reader) -> int | None:
    """Return the id of the group new accounts get, locked as in `DEFAULT_GROUP`; None without."""
    return reader.execute(select(DEFAULT_GROUP.c.id)).scalar()


def find_default_policy(session: Session) -> StoragePolicy | None:
    """Return the default policy; None before the bootstrap."""
    statement = select(StoragePolicy).where(StoragePolicy.is_default)
    return session.scalars(statement.order_by(StoragePolicy.id).limit(1)).first()


def find_default_group(session: Session) -> StoragePolicyGroup | None:
    """Return the group flagged default, usable or not."""
    statement = select(StoragePolicyGroup).where(StoragePolicyGroup.is_default)
    return session.scalars(statement.order_by(StoragePolicyGroup.id).limit(1)).first()


def list_policies(session: Session) -> Sequence[StoragePolicy]:
    """Return all policies, ordered by id."""
    return session.scalars(select(StoragePolicy).order_by(StoragePolicy.id)).all()


def list_groups(session: Session) -> Sequence[StoragePolicyGroup]:
    """Return all groups, ordered by id."""
    return session.scalars(select(StoragePolicyGroup).order_by(StoragePolicyGroup.id)).all()


def list_items(
    session: Session, group_ids: Sequence[int]
) -> Sequence[Row[StoragePolicyGroupItem, StoragePolicy]]:
    """Return the items of these groups with their policies, ordered by group and priority."""
    statement = (
        select(StoragePolicyGroupItem, StoragePolicy)
        .join(StoragePolicy, StoragePolicy.id == StoragePolicyGroupItem.policy_id)
        .where(StoragePolicyGroupItem.group_id.in_(group_ids))
        .order_by(StoragePolicyGroupItem.group_id, StoragePolicyGroupItem.priority)
    )
    return session.execute(statement).all()


def has_items(session: Session, group_id: int) -> bool:
    """Return whether the group has a policy."""
    condition = exists(
        select(StoragePolicyGroupItem.id).where(StoragePolicyGroupItem.group_id == group_id)
    )
    return bool(session.execute(select(condition)).scalar())


def find_called(session: Session, kind: type[Named], row_id: int | None, name: str) -> list[Named]:
    """Return the group or policy with this id, or else all with this name; names aren't unique."""
    if row_id is not None and (found := session.get(kind, row_id)):
        return [found]
    return list(session.scalars(select(kind).where(kind.name == name).order_by(kind.id)))


def find_group(session: Session, group_id: int) -> StoragePolicyGroup | None:
    """Return the group; None if there is none."""
    return session.get(StoragePolicyGroup, group_id)


def set_default(session: Session, group_id: int, now: datetime) -> None:
    """Make one group the only default; only rows that change are updated."""
    is_it = StoragePolicyGroup.id == group_id
    session.execute(
        update(StoragePolicyGroup)
        .where(StoragePolicyGroup.is_default != is_it)
        .values(is_default=is_it, updated_at=now)
    )


def remove_group(session: Session, group_id: int) -> None:
    """Delete a group with its items."""
    session.execute(delete(StoragePolicyGroup).where(StoragePolicyGroup.id == group_id))


def lock_group(session: Session, group_id: int) -> None:
    """Lock a group: wait for assignments to it that are under way, and block further ones."""
    statement = select(StoragePolicyGroup.id).where(StoragePolicyGroup.id == group_id)
    session.execute(statement.with_for_update()).all()


def count_assigned_users(session: Session, group_id: int) -> int:
    """Return how many accounts are assigned to the group."""
    statement = select(func.count()).select_from(User).where(User.policy_group_id == group_id)
    return int(session.execute(statement).scalar_one())


def move_users(session: Session, source_id: int, target_id: int, now: datetime) -> int:
    """Reassign every account of one group to another; return how many."""
    return bulk.change(
        session,
        update(User)
        .where(User.policy_group_id == source_id)
        .values(policy_group_id=target_id, updated_at=now),
    )


def assign_everybody_without_group(session: Session, group_id: int, now: datetime) -> None:
    """Assign every account that has no group to this one."""
    session.execute(
        update(User)
        .where(User.policy_group_id.is_(None))
        .values(policy_group_id=group_id, updated_at=now)
    )
