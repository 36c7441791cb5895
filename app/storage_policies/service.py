"""Policies and groups: the default storage route, an operator's use cases, and the rules of groups.

Every change holds the lock STORAGE_TOPOLOGY.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.database import locks
from app.core.database.named import get_named
from app.core.runtime import Runtime
from app.core.texts import pluralized
from app.storage_policies import queries
from app.storage_policies.errors import (
    DefaultGroupRequired,
    GroupAssigned,
    GroupNotFound,
    GroupUnusable,
    NameInvalid,
    PolicyNotFound,
    PolicyRepeated,
)
from app.storage_policies.models import (
    DEFAULT_CHUNK_BYTES,
    MAX_NAME_LENGTH,
    StoragePolicy,
    StoragePolicyGroup,
    StoragePolicyGroupItem,
)
from app.teams.models import Team
from app.users.models import User

DEFAULT_POLICY_NAME = "Local storage"
DEFAULT_GROUP_NAME = "Default Policy Group"


@dataclass(frozen=True)
class StorageRoute:
    """The ids of the default policy and the default group."""

    policy_id: int
    group_id: int


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
        queries.move_assigned(session, User, None, group.id, now)
        queries.move_assigned(session, Team, None, group.id, now)
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
        policy = _add_policy(session, DEFAULT_POLICY_NAME, now, is_default=True)
        events.append(_policy_created(policy))
    group = queries.find_default_group(session)
    if group is None:
        group = _add_group(session, DEFAULT_GROUP_NAME, [policy], now, is_default=True)
        events.append(_group_created(group))
    if not group.is_enabled:
        group.is_enabled, group.updated_at = True, now
        events.append(_group_updated(group, is_enabled=True))
    if not group.items:
        group.items.append(_item(policy, 1, now))
        events.append(_group_updated(group, policy_ids=[policy.id]))
    return policy, group, events


def get_group(session: Session, typed: str) -> StoragePolicyGroup:
    """Return the group with the id or name an operator typed.

    Raises: GroupNotFound, NameAmbiguous.
    """
    words = "policy group", "policy groups"
    return get_named(session, StoragePolicyGroup, typed, GroupNotFound, *words)


def require_assignable(group: StoragePolicyGroup) -> None:
    """Refuse assignments to a group that is disabled or has no policy.

    Raises: GroupUnusable.
    """
    if not group.is_enabled or not group.items:
        raise GroupUnusable


def list_policies(rt: Runtime) -> Sequence[StoragePolicy]:
    """Return all policies."""
    with rt.reading() as session:
        return session.scalars(select(StoragePolicy).order_by(StoragePolicy.id)).all()


def list_groups(rt: Runtime) -> Sequence[StoragePolicyGroup]:
    """Return all groups."""
    with rt.reading() as session:
        return session.scalars(select(StoragePolicyGroup).order_by(StoragePolicyGroup.id)).all()


def create_policy(rt: Runtime, name: str) -> StoragePolicy:
    """Create a policy for files on this machine; it is in no group yet.

    Raises: NameInvalid.
    """
    name = _checked(name)
    with _changing(rt) as session:
        policy = _add_policy(session, name, rt.clock.now())
        audit.record(rt, session, _policy_created(policy))
        return policy


def create_group(
    rt: Runtime, name: str, policies: Sequence[str], *, is_default: bool = False
) -> StoragePolicyGroup:
    """Create a group of policies, given by id or name in the order they are to be tried.

    Raises: NameInvalid, PolicyNotFound, NameAmbiguous, PolicyRepeated.
    """
    name, now = _checked(name), rt.clock.now()
    words = "storage policy", "storage policies"
    with _changing(rt) as session:
        found = [get_named(session, StoragePolicy, p, PolicyNotFound, *words) for p in policies]
        if len(set(found)) < len(found):
            raise PolicyRepeated
        group = _add_group(session, name, found, now)
        if is_default:
            queries.set_default(session, group, now)
        audit.record(rt, session, _group_created(group))
        return group


def set_default(rt: Runtime, typed: str) -> StoragePolicyGroup:
    """Make a group the default, which new accounts get.

    Raises: GroupNotFound, NameAmbiguous; GroupUnusable if it is disabled or empty.
    """
    with _changing(rt) as session:
        group = get_group(session, typed)
        require_assignable(group)
        if not group.is_default:
            queries.set_default(session, group, rt.clock.now())
            audit.record(rt, session, _group_updated(group, is_default=True))
        return group


def enable_group(rt: Runtime, typed: str) -> StoragePolicyGroup:
    """Enable a group, so that accounts and teams can be assigned to it again.

    Raises: GroupNotFound, NameAmbiguous.
    """
    with _changing(rt) as session:
        return _switch(rt, session, get_group(session, typed), is_enabled=True)


def disable_group(rt: Runtime, typed: str) -> StoragePolicyGroup:
    """Disable a group that nobody is assigned to, so that nobody can be assigned any more.

    Raises: GroupNotFound, NameAmbiguous, DefaultGroupRequired, GroupAssigned.
    """
    with _changing(rt) as session:
        group = get_group(session, typed)
        if group.is_default:
            raise DefaultGroupRequired
        _require_unassigned(session, group)
        return _switch(rt, session, group, is_enabled=False)


def delete_group(rt: Runtime, typed: str) -> StoragePolicyGroup:
    """Delete a group that nobody is assigned to; return it as it was.

    Deleting the default group returns the installation to the state `needs_storage`.
    Raises: GroupNotFound, NameAmbiguous, GroupAssigned.
    """
    with _changing(rt) as session:
        group = get_group(session, typed)
        _require_unassigned(session, group)
        session.delete(group)
        audit.record(rt, session, _of_group(Action.ADMIN_DELETE_POLICY_GROUP, group, {}))
        return group


@contextmanager
def _changing(rt: Runtime) -> Iterator[Session]:
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        yield session


def _checked(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise NameInvalid
    return name


def _add_policy(
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


def _add_group(
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
        items=[_item(policy, priority, now) for priority, policy in enumerate(policies, start=1)],
    )
    session.add(group)
    session.flush()
    return group


def _item(policy: StoragePolicy, priority: int, now: datetime) -> StoragePolicyGroupItem:
    return StoragePolicyGroupItem(
        policy=policy, priority=priority, min_file_size=0, max_file_size=0, created_at=now
    )


def _require_unassigned(session: Session, group: StoragePolicyGroup) -> None:
    # The lock waits for assignments to the group that are under way, and blocks further ones.
    session.refresh(group, ["is_enabled"], with_for_update=True)
    users = queries.count_assigned(session, User, group.id)
    teams = queries.count_assigned(session, Team, group.id)
    if users or teams:
        raise GroupAssigned(
            f"The policy group is still assigned to {pluralized(users, 'user', 'users')} and "
            f"{pluralized(teams, 'team', 'teams')}; `flask storage migrate-assignments` moves them."
        )


def _switch(
    rt: Runtime, session: Session, group: StoragePolicyGroup, *, is_enabled: bool
) -> StoragePolicyGroup:
    if group.is_enabled is not is_enabled:
        group.is_enabled, group.updated_at = is_enabled, rt.clock.now()
        audit.record(rt, session, _group_updated(group, is_enabled=is_enabled))
    return group


def _policy_created(policy: StoragePolicy) -> Event:
    return Event(
        Action.ADMIN_CREATE_STORAGE_POLICY,
        EntityType.STORAGE_POLICY,
        entity_id=policy.id,
        entity_name=policy.name,
    )


def _group_created(group: StoragePolicyGroup) -> Event:
    policy_ids = [item.policy_id for item in group.items]
    details = {"policy_ids": policy_ids, "is_default": group.is_default}
    return _of_group(Action.ADMIN_CREATE_POLICY_GROUP, group, details)


def _group_updated(group: StoragePolicyGroup, **changed: object) -> Event:
    return _of_group(Action.ADMIN_UPDATE_POLICY_GROUP, group, changed)


def _of_group(action: Action, group: StoragePolicyGroup, details: Mapping[str, object]) -> Event:
    return Event(
        action,
        EntityType.POLICY_GROUP,
        entity_id=group.id,
        entity_name=group.name,
        details=details,
    )
