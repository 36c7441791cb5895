"""Policies and groups: the default storage route, and what the use cases of groups share.

Every change holds the lock STORAGE_TOPOLOGY.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core import product
from app.core.access import Operator
from app.core.runtime import Runtime
from app.storage_policies import queries
from app.storage_policies.errors import (
    GroupNotFound,
    GroupUnusable,
    NameInvalid,
)
from app.storage_policies.models import (
    DEFAULT_CHUNK_BYTES,
    LOCAL_CONNECTOR,
    MAX_NAME_LENGTH,
    StoragePolicy,
    StoragePolicyGroup,
    StoragePolicyGroupItem,
)
from app.store import locks
from app.store.named import get_named
from app.teams.models import Team
from app.users.models import User

DEFAULT_POLICY_NAME = "Local storage"
DEFAULT_GROUP_NAME = "Default Policy Group"


@dataclass(frozen=True)
class StorageRoute:
    """The ids of the default policy and the default group."""

    policy_id: int
    group_id: int


def bootstrap(rt: Runtime, by: Operator | None = None) -> StorageRoute:
    """Create whatever is missing of the default route; idempotent.

    Accounts and teams without a group are assigned to the default one. `by` is the operator who
    asked for it; what a server does for itself at its start is not recorded.
    """
    now = rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.SETUP)  # so that no administrator is created without a group
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        policy, group, events = _completed_route(session, now)
        queries.move_assigned(session, User, None, group.id, now)
        queries.move_assigned(session, Team, None, group.id, now)
        if by is not None:
            by.recheck(session)
            for event in events:
                record(rt, session, by, event)
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
        items = [item(policy, 1, now)]
        group = add_group(session, DEFAULT_GROUP_NAME, items, now, is_default=True)
        events.append(group_created(group))
    if not group.is_enabled:
        group.is_enabled, group.updated_at = True, now
        events.append(group_updated(group, is_enabled=True))
    if not group.items:
        group.items.append(item(policy, 1, now))
        events.append(group_updated(group, policy_ids=[policy.id]))
    return policy, group, events


def get_group(session: Session, typed: str | int) -> StoragePolicyGroup:
    """Return the group with the id or name an operator typed.

    Raises: GroupNotFound, NameAmbiguous.
    """
    words = "policy group", "policy groups"
    return get_named(session, StoragePolicyGroup, typed, GroupNotFound, *words)


def get_assignable(session: Session, typed: str | int) -> StoragePolicyGroup:
    """Return the group with this id or name, to which accounts and teams can be assigned.

    Raises: errors.GROUP_REFUSED, NameAmbiguous.
    """
    group = get_group(session, typed)
    require_assignable(group)
    return group


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


def create_policy(
    rt: Runtime,
    by: Operator,
    name: str,
    *,
    max_file_size: int = 0,
    chunk_size: int = DEFAULT_CHUNK_BYTES,
    allowed_types: Sequence[str] = (),
) -> StoragePolicy:
    """Create a policy for files on this machine; it is in no group yet.

    Raises: NameInvalid.
    """
    name = checked_name(name)
    with changing(rt) as session:
        policy = _add_policy(session, name, rt.clock.now())
        policy.max_file_size, policy.chunk_size = max_file_size, chunk_size
        policy.allowed_types = json.dumps(list(allowed_types))
        session.flush()
        record(rt, session, by, _policy_created(policy))
        return policy


@contextmanager
def changing(rt: Runtime) -> Iterator[Session]:
    """Open a transaction that holds the lock of every change here."""
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        yield session


def record(rt: Runtime, session: Session, by: Operator, event: Event) -> None:
    """Record what an operator did, who must still be an administrator.

    Raises: TokenInvalid, AccountDisabled, AdminRequired.
    """
    by.recheck(session)
    audit.record(rt, session, replace(event, client=by.client, user_id=by.user_id or 0))


def checked_name(name: str) -> str:
    """Return the name without surrounding spaces.

    Raises: NameInvalid.
    """
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
        connector_id=LOCAL_CONNECTOR,
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
    items: Sequence[StoragePolicyGroupItem],
    now: datetime,
    *,
    description: str = "",
    is_enabled: bool = True,
    is_default: bool = False,
) -> StoragePolicyGroup:
    """Insert a group."""
    group = StoragePolicyGroup(
        name=name,
        description=description,
        is_enabled=is_enabled,
        is_default=is_default,
        created_at=now,
        updated_at=now,
        items=list(items),
    )
    session.add(group)
    session.flush()
    return group


def item(
    policy: StoragePolicy,
    priority: int,
    now: datetime,
    min_file_size: int = 0,
    max_file_size: int = 0,
) -> StoragePolicyGroupItem:
    """Return a policy's place in a group, by default for files of any size."""
    return StoragePolicyGroupItem(
        policy=policy,
        priority=priority,
        min_file_size=min_file_size,
        max_file_size=max_file_size,
        created_at=now,
    )


def _policy_created(policy: StoragePolicy) -> Event:
    return Event(
        Action.ADMIN_CREATE_STORAGE_POLICY,
        EntityType.STORAGE_POLICY,
        entity_id=policy.id,
        entity_name=policy.name,
    )


def group_created(group: StoragePolicyGroup) -> Event:
    """Return the event of a new group."""
    policy_ids = [item.policy_id for item in group.items]
    details = {"policy_ids": policy_ids, "is_default": group.is_default}
    return of_group(Action.ADMIN_CREATE_POLICY_GROUP, group, details)


def group_updated(group: StoragePolicyGroup, **changed: object) -> Event:
    """Return the event of a changed group."""
    return of_group(Action.ADMIN_UPDATE_POLICY_GROUP, group, changed)


def of_group(action: Action, group: StoragePolicyGroup, details: Mapping[str, object]) -> Event:
    """Return an event about a group."""
    return Event(
        action,
        EntityType.POLICY_GROUP,
        entity_id=group.id,
        entity_name=group.name,
        details=details,
    )


def driver_texts(locale: str) -> dict[str, Any]:
    """Return the texts about files on this machine, in English if there are none in `locale`."""
    language = locale.replace("_", "-").partition("-")[0].lower()
    resolved = language if language in product.LOCAL_DRIVER_TEXTS else "en"
    texts = {
        "connector_id": LOCAL_CONNECTOR,
        "namespace": LOCAL_CONNECTOR,
        "revision": "1",
        "requested_locale": locale,
        "resolved_locale": resolved,
        "messages": product.LOCAL_DRIVER_TEXTS[resolved],
    }
    return {"requested_locale": locale, "resources": [texts]}
