"""Moving every assignment of one policy group to another."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import AccountDisabled, AdminRequired, Principal, TokenInvalid
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
from app.teams.models import Team
from app.users import queries as users_queries
from app.users.models import Role, Status, User

NOBODY = 0  # the audit log's user id for the command line


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
    rt: Runtime,
    source_group_id: int,
    target_group_id: int,
    *,
    by: Principal,
    client: Client,
) -> Migrated:
    """Assign all accounts and teams of the source group to the target group; idempotent.

    Raises, in this order: TargetNotPositive; TokenInvalid, AccountDisabled, AdminRequired if `by`
    has lost access since the access check; GroupNotFound;
    SameGroup, TargetDisabled, TargetEmpty.
    """
    if target_group_id < 1:
        raise TargetNotPositive
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        _require_still_admin(session, by)
        source = session.get(StoragePolicyGroup, source_group_id)
        target = session.get(StoragePolicyGroup, target_group_id)
        if source is None or target is None:
            raise GroupNotFound
        return _migrate(rt, session, source, target, by.user_id, client)


def migrate_named(rt: Runtime, source: str, target: str) -> Migrated:
    """Like `migrate_assignments`, for an operator who gives the groups by id or name.

    Raises, in this order: GroupNotFound, NameAmbiguous; SameGroup, TargetDisabled, TargetEmpty.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        found = service.get_group(session, source), service.get_group(session, target)
        return _migrate(rt, session, *found, NOBODY, None)


def _require_still_admin(session: Session, by: Principal) -> None:
    """Refuse an administrator demoted or disabled while the body arrived or the lock was awaited.

    So is one whose sessions were all revoked since, say because one was stolen: that changes the
    account's `session_version`. Raises: TokenInvalid, AccountDisabled, AdminRequired.
    """
    account = users_queries.lock_and_find(session, by.user_id)
    if account is None:
        raise TokenInvalid
    if account.status != Status.ACTIVE:
        raise AccountDisabled
    if account.session_version != by.account.session_version:
        raise TokenInvalid
    if account.role != Role.ADMIN:
        raise AdminRequired


def _migrate(
    rt: Runtime,
    session: Session,
    source: StoragePolicyGroup,
    target: StoragePolicyGroup,
    user_id: int,
    client: Client | None,
) -> Migrated:
    """Move the source's current assignments; the caller holds the lock STORAGE_TOPOLOGY."""
    if source.id == target.id:
        raise SameGroup
    if not target.is_enabled:
        raise TargetDisabled
    if not target.items:
        raise TargetEmpty
    now = rt.clock.now()
    done = Migrated(
        source.id,
        target.id,
        affected_users=queries.move_assigned(session, User, source.id, target.id, now),
        affected_teams=queries.move_assigned(session, Team, source.id, target.id, now),
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
