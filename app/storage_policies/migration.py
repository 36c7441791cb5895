"""Moving every assignment of one policy group to another."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.access import ClosedToTokens, Operator, Program
from app.core.runtime import Runtime
from app.storage_policies import queries, service
from app.storage_policies.errors import (
    SameGroup,
    TargetDisabled,
    TargetEmpty,
    TargetNotPositive,
)
from app.storage_policies.models import StoragePolicyGroup
from app.store import locks
from app.teams.models import Team
from app.users.models import User


@dataclass(frozen=True)
class Migrated:
    """The result of a migration."""

    source_group_id: int
    target_group_id: int
    affected_users: int
    affected_teams: int

    @property
    def migrated_assignments(self) -> int:
        """Return the total number of assignments moved."""
        return self.affected_users + self.affected_teams


def migrate_assignments(
    rt: Runtime, by: Operator, source: str | int, target: str | int
) -> Migrated:
    """Assign all accounts and teams of the source group to the target group; idempotent.

    Raises, in this order: TargetNotPositive; TokenInvalid, AccountDisabled, AdminRequired if the
    operator has lost access meanwhile; GroupNotFound, NameAmbiguous; SameGroup, TargetDisabled,
    TargetEmpty; ClosedToTokens for a program, if an administrator is assigned to the source.
    """
    if isinstance(target, int) and target < 1:
        raise TargetNotPositive
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        by.recheck(session)
        found = service.get_group(session, source), service.get_group(session, target)
        return _migrate(rt, session, by, *found)


def _migrate(
    rt: Runtime,
    session: Session,
    by: Operator,
    source: StoragePolicyGroup,
    target: StoragePolicyGroup,
) -> Migrated:
    """Move the source's current assignments; the caller holds the lock STORAGE_TOPOLOGY."""
    if source.id == target.id:
        raise SameGroup
    if not target.is_enabled:
        raise TargetDisabled
    if not target.items:
        raise TargetEmpty
    if isinstance(by.principal, Program) and queries.has_administrator(session, source.id):
        raise ClosedToTokens
    now = rt.clock.now()
    done = Migrated(
        source.id,
        target.id,
        affected_users=queries.move_assigned(session, User, source.id, target.id, now),
        affected_teams=queries.move_assigned(session, Team, source.id, target.id, now),
    )
    audit.record_by(
        rt,
        session,
        by,
        Action.ADMIN_MIGRATE_POLICY_GROUP_USERS,
        EntityType.POLICY_GROUP,
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
    return done
