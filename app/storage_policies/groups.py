"""An operator's use cases for policies and groups, and the rules of groups."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.core.database import locks
from app.core.runtime import Runtime
from app.core.texts import pluralized
from app.storage_policies import queries, service
from app.storage_policies.errors import (
    DefaultGroupRequired,
    GroupAssigned,
    NameInvalid,
    PolicyRepeated,
)
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup
from app.storage_policies.service import GroupWithItems
from app.teams import queries as teams_queries

MAX_NAME_LENGTH = 128


def create_policy(rt: Runtime, name: str) -> StoragePolicy:
    """Create a policy for files on this machine; it is in no group yet.

    Raises: NameInvalid.
    """
    name, now = _checked(name), rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        policy = service.add_policy(session, name, now)
        audit.record(rt, session, service.policy_created(policy))
        return policy


def create_group(
    rt: Runtime, name: str, policies: Sequence[str], *, is_default: bool = False
) -> GroupWithItems:
    """Create a group of policies, given by id or name in the order they are to be tried.

    Raises: NameInvalid, PolicyNotFound, PolicyAmbiguous, PolicyRepeated.
    """
    name, now = _checked(name), rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        found = [service.named_policy(session, typed) for typed in policies]
        if len({policy.id for policy in found}) < len(found):
            raise PolicyRepeated
        group = service.add_group(session, name, found, now)
        if is_default:
            queries.set_default(session, group.id, now)
        event = service.group_created(group, found, is_default=is_default)
        audit.record(rt, session, event)
        return service.with_items(session, group)


def set_default(rt: Runtime, typed: str) -> GroupWithItems:
    """Make a group the default, which new accounts get.

    Raises: GroupNotFound, GroupAmbiguous; GroupUnusable if it is disabled or empty.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        group = service.named_group(session, typed)
        service.require_assignable(session, group)
        if not group.is_default:
            queries.set_default(session, group.id, rt.clock.now())
            audit.record(rt, session, service.group_updated(group, is_default=True))
        return service.with_items(session, group)


def enable_group(rt: Runtime, typed: str) -> GroupWithItems:
    """Enable a group, so that accounts and teams can be assigned to it again.

    Raises: GroupNotFound, GroupAmbiguous.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        group = service.named_group(session, typed)
        return _switch(rt, session, group, is_enabled=True)


def disable_group(rt: Runtime, typed: str) -> GroupWithItems:
    """Disable a group that nobody is assigned to, so that nobody can be assigned any more.

    Raises: GroupNotFound, GroupAmbiguous, DefaultGroupRequired, GroupAssigned.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        group = service.named_group(session, typed)
        if group.is_default:
            raise DefaultGroupRequired
        _require_unassigned(session, group)
        return _switch(rt, session, group, is_enabled=False)


def delete_group(rt: Runtime, typed: str) -> GroupWithItems:
    """Delete a group that nobody is assigned to; return it as it was.

    Deleting the default group returns the installation to the state `needs_storage`.
    Raises: GroupNotFound, GroupAmbiguous, GroupAssigned.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        group = service.named_group(session, typed)
        _require_unassigned(session, group)
        was = service.with_items(session, group)
        queries.remove_group(session, group.id)
        audit.record(rt, session, service.group_deleted(group))
        return was


def _checked(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise NameInvalid
    return name


def _require_unassigned(session: Session, group: StoragePolicyGroup) -> None:
    queries.lock_group(session, group.id)
    users = queries.count_assigned_users(session, group.id)
    teams = teams_queries.count_assigned(session, group.id)
    if users or teams:
        raise GroupAssigned(
            f"The policy group is still assigned to {pluralized(users, 'user', 'users')} and "
            f"{pluralized(teams, 'team', 'teams')}; `flask storage migrate-assignments` moves them."
        )


def _switch(
    rt: Runtime, session: Session, group: StoragePolicyGroup, *, is_enabled: bool
) -> GroupWithItems:
    if group.is_enabled is not is_enabled:
        group.is_enabled, group.updated_at = is_enabled, rt.clock.now()
        audit.record(rt, session, service.group_updated(group, is_enabled=is_enabled))
    return service.with_items(session, group)
