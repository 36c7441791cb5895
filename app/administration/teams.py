"""Team administration for operators.

Lock order: storage topology, account, team.
"""

from typing import Any

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.database import locks
from app.core.runtime import Runtime
from app.settings import keys
from app.storage_policies import queries as storage_queries
from app.storage_policies import service as storage
from app.teams import service as teams
from app.teams.models import Team, TeamRole
from app.users import service as users


def create(rt: Runtime, name: str, owner: str) -> Team:
    """Create a team with its owner, in the default policy group if there is one.

    Raises: UserNotFound, TeamNameInvalid, TeamMemberDisabled.
    """
    quota, now = rt.settings.get(keys.DEFAULT_STORAGE_QUOTA), rt.clock.now()
    with rt.transaction() as session:
        account = users.lock_named(session, owner)
        group_id = storage_queries.find_default_group_id(session)
        team = teams.create(
            session, name, account, policy_group_id=group_id, storage_quota=quota, now=now
        )
        return _changed(rt, session, Action.ADMIN_CREATE_TEAM, team, {"owner_id": account.id})


def add_member(rt: Runtime, which: str, who: str, role: TeamRole) -> Team:
    """Add an account to a team.

    Raises: UserNotFound, TeamNotFound, NameAmbiguous, TeamArchived, TeamMemberDisabled,
    TeamMemberExists.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        team = teams.lock_unarchived(session, which)
        teams.add_member(session, team, account, role, rt.clock.now())
        details = {"added_user_id": account.id, "role": role}
        return _changed(rt, session, Action.ADMIN_UPDATE_TEAM, team, details)


def set_role(rt: Runtime, which: str, who: str, role: TeamRole) -> Team:
    """Change the role of a team member.

    Raises: UserNotFound, TeamNotFound, NameAmbiguous, TeamArchived, TeamNotMember, LastTeamOwner.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        team = teams.lock_unarchived(session, which)
        if not teams.set_role(session, team, account, role, rt.clock.now()):
            return team
        details = {"changed_user_id": account.id, "role": role}
        return _changed(rt, session, Action.ADMIN_UPDATE_TEAM, team, details)


def remove_member(rt: Runtime, which: str, who: str) -> Team:
    """Remove an account from a team.

    Raises: UserNotFound, TeamNotFound, NameAmbiguous, TeamArchived, TeamNotMember, LastTeamOwner.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        team = teams.lock_unarchived(session, which)
        teams.remove_member(session, team, account)
        details = {"removed_user_id": account.id}
        return _changed(rt, session, Action.ADMIN_UPDATE_TEAM, team, details)


def assign_group(rt: Runtime, which: str, group: str) -> Team:
    """Assign a team to a policy group.

    Raises: TeamNotFound, NameAmbiguous, TeamArchived, GroupNotFound, GroupUnusable.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        team = teams.lock_unarchived(session, which)
        target = storage.get_group(session, group)
        storage.require_assignable(target)
        if team.policy_group_id == target.id:
            return team
        team.policy_group_id, team.updated_at = target.id, rt.clock.now()
        details = {"policy_group_id": target.id}
        return _changed(rt, session, Action.ADMIN_UPDATE_TEAM, team, details)


def archive(rt: Runtime, which: str) -> Team:
    """Archive a team; idempotent. It is deleted `team_archive_retention_days` later.

    Raises: TeamNotFound, NameAmbiguous.
    """
    with rt.transaction() as session:
        team = teams.lock_named(session, which)
        if team.archived_at is not None:
            return team
        team.archived_at = team.updated_at = rt.clock.now()
        return _changed(rt, session, Action.ADMIN_ARCHIVE_TEAM, team, {})


def _changed(
    rt: Runtime, session: Session, action: Action, team: Team, details: dict[str, Any]
) -> Team:
    """Record a change and return the team, its owner and its members determined anew."""
    event = Event(
        action, EntityType.TEAM, entity_id=team.id, entity_name=team.name, details=details
    )
    audit.record(rt, session, event)
    session.refresh(team)
    return team
