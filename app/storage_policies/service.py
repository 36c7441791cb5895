"""The default storage route, and all policies and groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Row
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.database import locks
from app.core.runtime import Runtime
from app.core.texts import shortened, typed_id
from app.storage_policies import queries
from app.storage_policies.errors import (
    GroupAmbiguous,
    GroupNotFound,
    GroupUnusable,
    PolicyAmbiguous,
    PolicyNotFound,
)
from app.storage_policies.models import (
    DEFAULT_CHUNK_BYTES,
    StoragePolicy,
    StoragePolicyGroup,
    StoragePolicyGroupItem,
)
from app.teams import queries as teams_queries

DEFAULT_POLICY_NAME = "Local storage"
DEFAULT_GROUP_NAME = "Default Policy Group"


@dataclass(frozen=True)
class StorageRoute:
    """The ids of the default policy and the default group."""

    policy_id: int
    group_id: int


@dataclass(frozen=True)
class GroupWithItems:
    """A group and its policies, in the order they are tried."""

    group: StoragePolicyGroup
    items: list[Row[StoragePolicyGroupItem, StoragePolicy]]


def bootstrap(rt: Runtime, *, is_audited: bool = False) -> StorageRoute:
    """Create whatever is missing of the default route; idempotent.

    Accounts and teams without a group are assigned to the default one. `is_audited` is whether an
    operator asked for it; what a server does for itself at its start is not recorded.
    """
    now = rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.SETUP)  # so that no administrator is created without a group
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        policy, group, events = _completed_route(session, now)
        queries.assign_everybody_without_group(session, group.id, now)
        teams_queries.assign_all_without_group(session, group.id, now)
        for event in events if is_audited else ():
            audit.record(rt, session, event)
        return StorageRoute(policy.id, group.id)


def _completed_route(
    session: Session, now: datetime
) -> tuple[StoragePolicy, StoragePolicyGroup, list[Event]]:
    """Return the default policy and group, made or mended if need be, and what was done to them."""
    events = []
    policy = queries.find_default_policy(session)
    if policy is None:
        policy = add_policy(session, DEFAULT_POLICY_NAME, now, is_default=True)
        events.append(policy_created(policy))
    group = queries.find_default_group(session)
    if group is None:
        group = add_group(session, DEFAULT_GROUP_NAME, [policy], now, is_default=True)
        events.append(group_created(group, [policy], is_default=True))
    if not group.is_enabled:
        group.is_enabled, group.updated_at = True, now
        events.append(group_updated(group, is_enabled=True))
    if not queries.has_items(session, group.id):
        session.add(_item(group, policy, now))
        events.append(group_updated(group, policy_ids=[policy.id]))
    return policy, group, events


def named_group(session: Session, typed: str) -> StoragePolicyGroup:
    """Return the group with the id or name an operator typed; digits are taken for an id first.

    Raises: GroupNotFound; GroupAmbiguous if several groups have this name.
    """
    found = queries.find_called(session, StoragePolicyGroup, typed_id(typed), typed.strip())
    if not found:
        raise GroupNotFound(f"There is no policy group {shortened(typed)}.")
    if len(found) > 1:
        raise GroupAmbiguous(f"Several policy groups are called {_which(typed, found)}")
    return found[0]


def named_policy(session: Session, typed: str) -> StoragePolicy:
    """Return the policy with the id or name an operator typed; digits are taken for an id first.

    Raises: PolicyNotFound; PolicyAmbiguous if several policies have this name.
    """
    found = queries.find_called(session, StoragePolicy, typed_id(typed), typed.strip())
    if not found:
        raise PolicyNotFound(f"There is no storage policy {shortened(typed)}.")
    if len(found) > 1:
        raise PolicyAmbiguous(f"Several storage policies are called {_which(typed, found)}")
    return found[0]


def require_assignable(session: Session, group: StoragePolicyGroup) -> None:
    """Refuse assignments to a group that is disabled or has no policy.

    Raises: GroupUnusable.
    """
    if not group.is_enabled or not queries.has_items(session, group.id):
        raise GroupUnusable


def list_policies(rt: Runtime) -> list[StoragePolicy]:
    """Return all policies."""
    with rt.reading() as session:
        return list(queries.list_policies(session))


def list_groups(rt: Runtime) -> list[GroupWithItems]:
    """Return all groups with their policies."""
    with rt.reading() as session:
        groups = queries.list_groups(session)
        items = queries.list_items(session, [group.id for group in groups])
    return [
        GroupWithItems(group, [pair for pair in items if pair[0].group_id == group.id])
        for group in groups
    ]


def with_items(session: Session, group: StoragePolicyGroup) -> GroupWithItems:
    """Return one group with its policies."""
    return GroupWithItems(group, list(queries.list_items(session, [group.id])))


def add_policy(
    session: Session, name: str, now: datetime, *, is_default: bool = False
) -> StoragePolicy:
    """Insert a policy for files on this machine, without limits."""
    policy = StoragePolicy(
        name=name,
        connector_id="local",
        options="{}",
        max_file_size=0,
        allowed_types="[]",
        is_default=is_default,
        chunk_size=DEFAULT_CHUNK_BYTES,
        created_at=now,
        updated_at=now,
    )
    session.add(policy)
    session.flush()
    return policy


def add_group(
    session: Session,
    name: str,
    policies: Sequence[StoragePolicy],
    now: datetime,
    *,
    is_default: bool = False,
) -> StoragePolicyGroup:
    """Insert a group that tries these policies in this order, for files of any size."""
    group = StoragePolicyGroup(
        name=name,
        description="",
        is_enabled=True,
        is_default=is_default,
        created_at=now,
        updated_at=now,
    )
    session.add(group)
    session.flush()
    for priority, policy in enumerate(policies, start=1):
        session.add(_item(group, policy, now, priority))
    return group


def _item(
    group: StoragePolicyGroup, policy: StoragePolicy, now: datetime, priority: int = 1
) -> StoragePolicyGroupItem:
    return StoragePolicyGroupItem(
        group_id=group.id,
        policy_id=policy.id,
        priority=priority,
        min_file_size=0,
        max_file_size=0,
        created_at=now,
    )


def _which(typed: str, found: Sequence[StoragePolicyGroup] | Sequence[StoragePolicy]) -> str:
    ids = " or ".join(str(row.id) for row in found)
    return f"{shortened(typed)}; give the id, {ids}."


# --- events for the audit log ---------------------------------------------------------------------


def policy_created(policy: StoragePolicy) -> Event:
    """Return the event of a new policy."""
    return Event(
        Action.ADMIN_CREATE_STORAGE_POLICY,
        EntityType.STORAGE_POLICY,
        entity_id=policy.id,
        entity_name=policy.name,
    )


def group_created(
    group: StoragePolicyGroup, policies: Sequence[StoragePolicy], *, is_default: bool
) -> Event:
    """Return the event of a new group."""
    details = {"policy_ids": [policy.id for policy in policies], "is_default": is_default}
    return _of_group(Action.ADMIN_CREATE_POLICY_GROUP, group, details)


def group_updated(group: StoragePolicyGroup, **changed: object) -> Event:
    """Return the event of a group's change to these values."""
    return _of_group(Action.ADMIN_UPDATE_POLICY_GROUP, group, changed)


def group_deleted(group: StoragePolicyGroup) -> Event:
    """Return the event of a group's deletion."""
    return _of_group(Action.ADMIN_DELETE_POLICY_GROUP, group, {})


def _of_group(action: Action, group: StoragePolicyGroup, details: Mapping[str, object]) -> Event:
    return Event(
        action,
        EntityType.POLICY_GROUP,
        entity_id=group.id,
        entity_name=group.name,
        details=details,
    )
