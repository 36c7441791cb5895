"""Moving every assignment of one policy group to another (spec, Endpoint rules 12; 04 §5.3)."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.client import Client
from app.core.database import locks
from app.core.runtime import Runtime
from app.storage_policies import queries, service
from app.storage_policies.errors import (
    GroupNotFound,
    SameGroup,
    TargetDisabled,
    TargetEmpty,
    TargetNotPositive,
)
from app.storage_policies.models import StoragePolicyGroup
from app.teams import queries as teams_queries

MOST_ID = 2**63 - 1


@dataclass(frozen=True)
class Migrated:
    """What was moved from where to where."""

    source_group_id: int
    target_group_id: int
    affected_users: int
    affected_teams: int

    @property
    def migrated_assignments(self) -> int:
        """Return how many assignments were moved in all."""
        return self.affected_users + self.affected_teams


def migrate_assignments(
    rt: Runtime,
    source_group_id: int,
    target_group_id: int,
    *,
    user_id: int = 0,
    client: Client | None = None,
) -> Migrated:
    """Assign all accounts and teams of the source group to the target group; repeatable.

    `user_id` is the administrator who asked; 0 and a client of None are the command line.
    Raises, in this order: TargetNotPositive; GroupNotFound for the source, then for the target;
    SameGroup, TargetDisabled, TargetEmpty.
    """
    if target_group_id < 1:
        raise TargetNotPositive
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        source = _found(session, source_group_id)
        target = _found(session, target_group_id)
        return _migrate(rt, session, source, target, user_id, client)


def migrate_named(rt: Runtime, source: str, target: str) -> Migrated:
    """Like `migrate_assignments`, for groups an operator names by id or name.

    Raises, in this order: GroupNotFound, GroupAmbiguous; SameGroup, TargetDisabled, TargetEmpty.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        found = service.named_group(session, source), service.named_group(session, target)
        return _migrate(rt, session, *found, 0, None)


def _found(session: Session, group_id: int) -> StoragePolicyGroup:
    group = queries.find_group(session, group_id) if 0 < group_id <= MOST_ID else None
    if group is None:
        raise GroupNotFound
    return group


def _migrate(
    rt: Runtime,
    session: Session,
    source: StoragePolicyGroup,
    target: StoragePolicyGroup,
    user_id: int,
    client: Client | None,
) -> Migrated:
    """Move what the source has at this moment; the caller holds the storage topology."""
    if source.id == target.id:
        raise SameGroup
    if not target.is_enabled:
        raise TargetDisabled
    if not queries.has_items(session, target.id):
        raise TargetEmpty
    now = rt.clock.now()
    done = Migrated(
        source.id,
        target.id,
        affected_users=queries.move_users(session, source.id, target.id, now),
        affected_teams=teams_queries.move_assignments(session, source.id, target.id, now),
    )
    event = Event(
        Action.ADMIN_MIGRATE_POLICY_GROUP_USERS,
        EntityType.POLICY_GROUP,
        client=client,
        user_id=user_id,
        entity_id=source.id,
        entity_name=source.name,
        details={
            "source_group_id": source.id,
            "source_group_name": source.name,
            "target_group_id": target.id,
            "target_group_name": target.name,
            "affected_users": done.affected_users,
            "affected_teams": done.affected_teams,
            "migrated_assignments": done.migrated_assignments,
        },
    )
    audit.record(rt, session, event)
    return done
