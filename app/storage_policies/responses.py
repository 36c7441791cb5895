"""JSON representations of policies and groups (spec 04 §5.4)."""

from typing import Any

from app.storage_policies.migration import Migrated
from app.storage_policies.models import StoragePolicy, StoragePolicyGroupItem
from app.storage_policies.service import GroupWithItems
from app.web.schema import timestamp


def policy(row: StoragePolicy) -> dict[str, Any]:
    """Represent a policy."""
    return {
        "id": row.id,
        "name": row.name,
        "connector_id": row.connector_id,
        "is_default": row.is_default,
        "max_file_size": row.max_file_size,
        "chunk_size": row.chunk_size,
        "created_at": timestamp(row.created_at),
        "updated_at": timestamp(row.updated_at),
    }


def group(row: GroupWithItems) -> dict[str, Any]:
    """Represent a group with its items."""
    return {
        "id": row.group.id,
        "name": row.group.name,
        "description": row.group.description,
        "is_enabled": row.group.is_enabled,
        "is_default": row.group.is_default,
        "created_at": timestamp(row.group.created_at),
        "updated_at": timestamp(row.group.updated_at),
        "items": [_item(item, policy) for item, policy in row.items],
    }


def migrated(done: Migrated) -> dict[str, int]:
    """Represent the result of a migration of assignments."""
    return {
        "source_group_id": done.source_group_id,
        "target_group_id": done.target_group_id,
        "affected_users": done.affected_users,
        "affected_teams": done.affected_teams,
        "migrated_assignments": done.migrated_assignments,
    }


def _item(item: StoragePolicyGroupItem, policy: StoragePolicy) -> dict[str, Any]:
    return {
        "id": item.id,
        "policy_id": item.policy_id,
        "priority": item.priority,
        "min_file_size": item.min_file_size,
        "max_file_size": item.max_file_size,
        "policy": {"id": policy.id, "name": policy.name, "connector_id": policy.connector_id},
    }
