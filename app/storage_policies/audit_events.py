"""The audit log's events about policies and groups (spec 04 §7)."""

from collections.abc import Mapping, Sequence

from app.audit.models import Action, EntityType, Event
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup


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
