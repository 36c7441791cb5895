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
from app.teams import queries
from app.teams import service as teams
from app.teams.models import TeamRole
from app.teams.queries import Member, TeamInfo
from app.users import service as users


def create(rt: Runtime, name: str, owner: str) -> TeamInfo:
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
        _record(rt, session, Action.ADMIN_CREATE_TEAM, team, {"owner_id": account.id})
        return team


def list_teams(rt: Runtime, *, archived: bool) -> list[TeamInfo]:
    """Return the teams, archived ones only if `archived` is true."""
    with rt.reading() as connection:
        return queries.list_teams(connection, archived=archived)


def owner_names(rt: Runtime) -> dict[int, str]:
    """Return the username of every account that owns a team."""
    with rt.reading() as connection:
        return queries.list_owner_names(connection)


def add_member(rt: Runtime, which: str, who: str, role: TeamRole) -> TeamInfo:
    """Add an account to a team.

    Raises: UserNotFound, TeamNotFound, TeamAmbiguous, TeamArchived, TeamMemberDisabled,
    TeamMemberExists.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        team = teams.lock_unarchived(session, which)
        teams.add_member(session, team, account, role, rt.clock.now())
        details = {"added_user_id": account.id, "role": role}
        _record(rt, session, Action.ADMIN_UPDATE_TEAM, team, details)
        return teams.get(session, team.id)


def list_members(rt: Runtime, which: str) -> list[Member]:
    """Return the members of a team, archived or not.

    Raises: TeamNotFound, TeamAmbiguous.
    """
    with rt.reading() as connection:
        return queries.list_members(connection, teams.named(connection, which).id)


def set_role(rt: Runtime, which: str, who: str, role: TeamRole) -> TeamInfo:
    """Change the role of a team member.

    Raises: UserNotFound, TeamNotFound, TeamAmbiguous, TeamArchived, TeamNotMember, LastTeamOwner.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        team = teams.lock_unarchived(session, which)
        if not teams.set_role(session, team, account, role, rt.clock.now()):
            return team
        details = {"changed_user_id": account.id, "role": role}
        _record(rt, session, Action.ADMIN_UPDATE_TEAM, team, details)
        return teams.get(session, team.id)


def remove_member(rt: Runtime, which: str, who: str) -> TeamInfo:
    """Remove an account from a team.

    Raises: UserNotFound, TeamNotFound, TeamAmbiguous, TeamArchived, TeamNotMember, LastTeamOwner.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        team = teams.lock_unarchived(session, which)
        teams.remove_member(session, team, account)
        details = {"removed_user_id": account.id}
        _record(rt, session, Action.ADMIN_UPDATE_TEAM, team, details)
        return teams.get(session, team.id)


def assign_group(rt: Runtime, which: str, group: str) -> TeamInfo:
    """Assign a team to a policy group.

    Raises: TeamNotFound, TeamAmbiguous, TeamArchived, GroupNotFound, NameAmbiguous, GroupUnusable.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.STORAGE_TOPOLOGY)
        team = teams.lock_unarchived(session, which)
        target = storage.get_group(session, group)
        storage.require_assignable(target)
        if team.policy_group_id == target.id:
            return team
        queries.set_columns(session, team.id, rt.clock.now(), policy_group_id=target.id)
        details = {"policy_group_id": target.id}
        _record(rt, session, Action.ADMIN_UPDATE_TEAM, team, details)
        return teams.get(session, team.id)


def archive(rt: Runtime, which: str) -> TeamInfo:
    """Archive a team; idempotent. It is deleted `team_archive_retention_days` later.

    Raises: TeamNotFound, TeamAmbiguous.
    """
    with rt.transaction() as session:
        team = teams.lock_named(session, which)
        if team.archived_at is not None:
            return team
        now = rt.clock.now()
        queries.set_columns(session, team.id, now, archived_at=now)
        _record(rt, session, Action.ADMIN_ARCHIVE_TEAM, team, {})
        return teams.get(session, team.id)


def _record(
    rt: Runtime, session: Session, action: Action, team: TeamInfo, details: dict[str, Any]
) -> None:
    event = Event(
        action, EntityType.TEAM, entity_id=team.id, entity_name=team.name, details=details
    )
    audit.record(rt, session, event)
