"""What operators do to policy groups; every change holds the lock STORAGE_TOPOLOGY."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete as sql_delete
from sqlalchemy.orm import Session

from app.audit.models import Action
from app.core.access import Operator
from app.core.runtime import Runtime
from app.core.texts import pluralized
from app.storage_policies import queries, service
from app.storage_policies.errors import (
    DefaultGroupRequired,
    GroupAssigned,
    GroupChanged,
    OneDefaultRequired,
    PolicyNotFound,
    PolicyRepeated,
)
from app.storage_policies.models import (
    StoragePolicy,
    StoragePolicyGroup,
    StoragePolicyGroupItem,
)
from app.store.named import get_named
from app.teams.models import Team
from app.users.models import User


@dataclass(frozen=True)
class Item:
    """A policy that a group is to have: the lowest number is tried first; sizes are in bytes."""

    policy_id: str | int
    priority: int
    min_file_size: int = 0
    max_file_size: int = 0


def in_order(policies: Iterable[str | int]) -> list[Item]:
    """Return items for files of any size, tried in this order."""
    return [Item(policy, priority) for priority, policy in enumerate(policies, start=1)]


def create(
    rt: Runtime,
    by: Operator,
    name: str,
    items: Sequence[Item],
    *,
    description: str = "",
    is_enabled: bool = True,
    is_default: bool = False,
) -> StoragePolicyGroup:
    """Create a group of policies.

    Raises: errors.CREATE_GROUP, NameAmbiguous; GroupUnusable only if a disabled group is to be the
    default.
    """
    name, now = service.checked_name(name), rt.clock.now()
    with service.changing(rt) as session:
        made = _items(session, items, now)
        group = service.add_group(
            session, name, made, now, description=description, is_enabled=is_enabled
        )
        if is_default:
            service.require_assignable(group)
            queries.set_default(session, group, now)
        service.record(rt, session, by, service.group_created(group))
        return group


def update(
    rt: Runtime,
    by: Operator,
    which: str | int,
    *,
    items: Sequence[Item] | None = None,
    is_default: bool | None = None,
    expected_updated_at: datetime | None = None,
    **changes: Any,
) -> StoragePolicyGroup:
    """Change `name`, `description`, `is_enabled`, the default, or all of the items: all or nothing.

    What already has its new value is left alone. Nobody may be assigned to a group that is
    disabled. `expected_updated_at` is the state the change is meant for; None accepts any.
    Raises: errors.UPDATE_GROUP, NameAmbiguous.
    """
    if "name" in changes:
        changes["name"] = service.checked_name(changes["name"])
    now = rt.clock.now()
    with service.changing(rt) as session:
        group = service.get_group(session, which)
        if expected_updated_at not in (None, group.updated_at):
            raise GroupChanged
        _require_changeable(session, group, changes, is_default=is_default)
        changed = _set(group, changes)
        if items is not None and _replace_items(session, group, _items(session, items, now)):
            changed["policy_ids"] = [item.policy_id for item in group.items]
        if is_default and not group.is_default:
            service.require_assignable(group)
            queries.set_default(session, group, now)
            changed["is_default"] = True
        if changed:
            group.updated_at = now
            service.record(rt, session, by, service.group_updated(group, **changed))
        return group


def delete(rt: Runtime, by: Operator, which: str | int) -> StoragePolicyGroup:
    """Delete a group that nobody is assigned to; return it as it was.

    Raises: errors.DELETE_GROUP, NameAmbiguous.
    """
    with service.changing(rt) as session:
        group = service.get_group(session, which)
        if group.is_default:
            raise DefaultGroupRequired
        _require_unassigned(session, group)
        session.delete(group)
        event = service.of_group(Action.ADMIN_DELETE_POLICY_GROUP, group, {})
        service.record(rt, session, by, event)
        return group


def _items(session: Session, items: Sequence[Item], now: datetime) -> list[StoragePolicyGroupItem]:
    words = "storage policy", "storage policies"
    found = [
        get_named(session, StoragePolicy, one.policy_id, PolicyNotFound, *words) for one in items
    ]
    if len(set(found)) < len(found):
        raise PolicyRepeated
    return [
        service.item(policy, one.priority, now, one.min_file_size, one.max_file_size)
        for policy, one in zip(found, items, strict=True)
    ]


def _require_changeable(
    session: Session,
    group: StoragePolicyGroup,
    changes: dict[str, Any],
    *,
    is_default: bool | None,
) -> None:
    if group.is_default and is_default is False:
        raise OneDefaultRequired
    if group.is_enabled and changes.get("is_enabled") is False:
        if group.is_default:
            raise DefaultGroupRequired
        _require_unassigned(session, group)


def _require_unassigned(session: Session, group: StoragePolicyGroup) -> None:
    # The lock waits for assignments to the group that are under way, and blocks further ones.
    session.refresh(group, ["is_enabled"], with_for_update=True)
    users = queries.count_assigned(session, User, group.id)
    teams = queries.count_assigned(session, Team, group.id)
    if users or teams:
        raise GroupAssigned(
            f"The policy group is still assigned to {pluralized(users, 'user', 'users')} and "
            f"{pluralized(teams, 'team', 'teams')}. Move them to another one first.",
            remedy="`flask storage migrate-assignments` does that.",
        )


def _set(group: StoragePolicyGroup, changes: dict[str, Any]) -> dict[str, object]:
    """Set columns that differ; return them with their previous values, as an entry tells them."""
    changed: dict[str, object] = {}
    for column, value in changes.items():
        if (previous := getattr(group, column)) != value:
            changed |= {column: value, f"previous_{column}": previous}
            setattr(group, column, value)
    return changed


def _replace_items(
    session: Session, group: StoragePolicyGroup, items: Sequence[StoragePolicyGroupItem]
) -> bool:
    """Replace all items of a group; False if they are the same already."""
    if sorted(map(_shape, group.items)) == sorted(map(_shape, items)):
        return False
    # Before the new ones are inserted: a policy and a priority are in a group once.
    its_items = StoragePolicyGroupItem.group_id == group.id
    session.execute(sql_delete(StoragePolicyGroupItem).where(its_items))
    session.expire(group, ["items"])
    group.items.extend(sorted(items, key=lambda item: item.priority))
    session.flush()
    return True


def _shape(item: StoragePolicyGroupItem) -> tuple[int, ...]:
    return item.priority, item.policy.id, item.min_file_size, item.max_file_size
