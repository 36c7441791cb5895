"""Statements on policies and groups, and on the accounts and teams that are assigned to them."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, exists, func, select, update
from sqlalchemy.orm import Session

from app.storage_policies.models import StoragePolicy, StoragePolicyGroup
from app.store import bulk
from app.store.paging import Page, Paging, read_items, rows_of
from app.teams.models import Team
from app.users.models import Role, User

POLICY_COLUMNS: dict[str, Any] = {
    "id": StoragePolicy.id,
    "name": StoragePolicy.name,
    "connector_id": StoragePolicy.connector_id,
    "is_default": StoragePolicy.is_default,
    "created_at": StoragePolicy.created_at,
    "updated_at": StoragePolicy.updated_at,
}
GROUP_COLUMNS: dict[str, Any] = {
    "id": StoragePolicyGroup.id,
    "name": StoragePolicyGroup.name,
    "is_enabled": StoragePolicyGroup.is_enabled,
    "is_default": StoragePolicyGroup.is_default,
    "created_at": StoragePolicyGroup.created_at,
    "updated_at": StoragePolicyGroup.updated_at,
}


def read_policies(session: Session, paging: Paging) -> Page:
    """Return a page of policies."""
    return _read(session, StoragePolicy, POLICY_COLUMNS, paging)


def read_groups(session: Session, paging: Paging) -> Page:
    """Return a page of groups."""
    return _read(session, StoragePolicyGroup, GROUP_COLUMNS, paging)


def _read(
    session: Session,
    table: Any,
    columns: dict[str, Any],
    paging: Paging,
) -> Page:
    return read_items(session, select(table.id), columns, paging, rows_of(session, table))


def usable_default_group() -> ColumnElement[bool]:
    """Return the condition that a group is the default and can take new accounts."""
    group = StoragePolicyGroup
    return group.is_default & group.is_enabled & group.items.any()


def find_default_group_id(session: Session) -> int | None:
    """Return the id of the group new accounts get; None while the storage route is incomplete.

    The lock keeps it from being disabled or deleted until the transaction ends: the foreign key's
    own check would be too late to prevent the one, and would fail after the other.
    """
    statement = (
        select(StoragePolicyGroup.id)
        .where(usable_default_group(), exists().where(StoragePolicy.is_default))
        .order_by(StoragePolicyGroup.id)
        .limit(1)
        .with_for_update(read=True, key_share=True)
    )
    return session.execute(statement).scalar()


def find_default_policy(session: Session) -> StoragePolicy | None:
    """Return the default policy; None before the bootstrap."""
    statement = select(StoragePolicy).where(StoragePolicy.is_default)
    return session.scalars(statement.order_by(StoragePolicy.id).limit(1)).first()


def find_default_group(session: Session) -> StoragePolicyGroup | None:
    """Return the group flagged default, usable or not."""
    statement = select(StoragePolicyGroup).where(StoragePolicyGroup.is_default)
    return session.scalars(statement.order_by(StoragePolicyGroup.id).limit(1)).first()


def set_default(session: Session, group: StoragePolicyGroup, now: datetime) -> None:
    """Make one group the only default; only rows that change are updated."""
    for one in session.scalars(select(StoragePolicyGroup)):
        if one.is_default is not (one is group):
            one.is_default, one.updated_at = one is group, now


def count_assigned(session: Session, table: type[User | Team], group_id: int) -> int:
    """Return how many accounts or teams are assigned to the group."""
    statement = select(func.count()).select_from(table).where(table.policy_group_id == group_id)
    return int(session.execute(statement).scalar_one())


def has_administrator(session: Session, group_id: int) -> bool:
    """Return whether an administrator is assigned to the group."""
    theirs = select(User.id).where(User.policy_group_id == group_id, User.role == Role.ADMIN)
    return session.scalar(theirs.limit(1)) is not None


def move_assigned(
    session: Session, table: type[User | Team], source_id: int | None, target_id: int, now: datetime
) -> int:
    """Reassign all accounts or teams of one group, or of none, to another; return how many."""
    statement = update(table).where(table.policy_group_id == source_id)
    return bulk.change(session, statement.values(policy_group_id=target_id, updated_at=now))
