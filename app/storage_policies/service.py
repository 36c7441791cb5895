"""The default storage route (spec 04 §5.2; decision A23)."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from app.core import locks
from app.core.ids import typed_id
from app.core.runtime import Runtime
from app.storage_policies import queries
from app.storage_policies.errors import GroupAmbiguous, GroupNotFound, GroupUnusable
from app.storage_policies.models import (
    DEFAULT_CHUNK_BYTES,
    StoragePolicy,
    StoragePolicyGroup,
    StoragePolicyGroupItem,
)

DEFAULT_POLICY_NAME = "Local storage"
DEFAULT_GROUP_NAME = "Default Policy Group"


@dataclass(frozen=True)
class StorageRoute:
    """The default policy and the default group."""

    policy_id: int
    group_id: int


@dataclass(frozen=True)
class GroupWithItems:
    """A group and its policies in the order they are tried."""

    group: StoragePolicyGroup
    items: list[tuple[StoragePolicyGroupItem, StoragePolicy]]


def bootstrap(rt: Runtime) -> StorageRoute:
    """Make the default route complete and assign everybody without a group; repeatable (E10)."""
    now = rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.SETUP)  # no administrator is made without a group meanwhile
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        policy = queries.find_default_policy(session) or _add_policy(session, now)
        group = queries.find_default_group(session) or _add_group(session, now)
        group.is_enabled = True
        if not queries.has_items(session, group.id):
            session.add(_item(group, policy, now))
        queries.assign_everybody_without_group(session, group.id, now)
        return StorageRoute(policy.id, group.id)


def named_group(session: Session, typed: str) -> StoragePolicyGroup:
    """Return the group an operator means, by id or name; digits are an id first.

    Raises: GroupNotFound; GroupAmbiguous when several groups have this name.
    """
    groups = queries.find_groups(session, group_id=typed_id(typed), name=typed.strip())
    if not groups:
        raise GroupNotFound
    if len(groups) > 1:
        raise GroupAmbiguous
    return groups[0]


def require_assignable(session: Session, group: StoragePolicyGroup) -> None:
    """Let accounts be assigned only to a group that can take their files (spec 04 §5.4).

    Raises: GroupUnusable.
    """
    if not group.is_enabled or not queries.has_items(session, group.id):
        raise GroupUnusable


def list_policies(rt: Runtime) -> list[StoragePolicy]:
    """Return every policy."""
    with rt.transaction() as session:
        return list(queries.list_policies(session))


def list_groups(rt: Runtime) -> list[GroupWithItems]:
    """Return every group with its policies."""
    with rt.transaction() as session:
        groups = queries.list_groups(session)
        items = queries.list_items(session, [group.id for group in groups])
    return [
        GroupWithItems(group, [pair for pair in items if pair[0].group_id == group.id])
        for group in groups
    ]


def _add_policy(session: Session, now: datetime) -> StoragePolicy:
    policy = StoragePolicy(
        name=DEFAULT_POLICY_NAME,
        connector_id="local",
        options="{}",
        max_file_size=0,
        allowed_types="[]",
        is_default=True,
        chunk_size=DEFAULT_CHUNK_BYTES,
        created_at=now,
        updated_at=now,
    )
    session.add(policy)
    session.flush()
    return policy


def _add_group(session: Session, now: datetime) -> StoragePolicyGroup:
    group = StoragePolicyGroup(
        name=DEFAULT_GROUP_NAME,
        description="",
        is_enabled=True,
        is_default=True,
        created_at=now,
        updated_at=now,
    )
    session.add(group)
    session.flush()
    return group


def _item(
    group: StoragePolicyGroup, policy: StoragePolicy, now: datetime
) -> StoragePolicyGroupItem:
    return StoragePolicyGroupItem(
        group_id=group.id,
        policy_id=policy.id,
        priority=1,
        min_file_size=0,
        max_file_size=0,
        created_at=now,
    )
