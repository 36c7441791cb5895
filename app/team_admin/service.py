"""Changes of teams, by operators and by members who manage one (`own_teams`).

Lock order: storage topology, account, team. Whoever is added, removed or given another role by
somebody else hears of it by mail. As anybody may add anybody, that names no member, and a team only
by plain words: nobody can have the service mail a link to strangers.
"""

import re
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.access import Operator
from app.core.runtime import Runtime
from app.events.messages import sync_after_commit
from app.settings import keys
from app.storage_policies import queries as storage_queries
from app.storage_policies import service as storage
from app.store import locks
from app.teams import service as teams
from app.teams.errors import TeamChanged
from app.teams.models import Team, TeamRole
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import UserNotFound
from app.users.models import Account

# What a change of a team is called in the audit log if a member makes it.
BY_MEMBER = {
    Action.ADMIN_CREATE_TEAM: Action.TEAM_CREATE,
    Action.ADMIN_UPDATE_TEAM: Action.TEAM_UPDATE,
    Action.ADMIN_ARCHIVE_TEAM: Action.TEAM_ARCHIVE,
    Action.ADMIN_RESTORE_TEAM: Action.TEAM_RESTORE,
}
# Names that no mail program turns into a link, an address or a telephone number.
PLAIN_NAME = re.compile(r"(?=.{1,40}$)[^\W\d_]+( [^\W\d_]+)*")
ROLE_NAMES = {
    TeamRole.OWNER: "an owner",
    TeamRole.ADMIN: "an administrator",
    TeamRole.MEMBER: "a member",
}


def account_id(rt: Runtime, user_id: int | None, identifier: str | None) -> int:
    """Return the id of the account that a request names in one of two ways; digits are no id.

    Raises: UserNotFound, if no account has the identifier.
    """
    if user_id is not None:
        return user_id
    with rt.reading() as session:
        name = identifiers.identifier(identifier or "")
        account = users_queries.find_by_identifier(session, name)
    if account is None:
        raise UserNotFound
    return account.id


def create(
    rt: Runtime,
    by: Operator,
    name: str,
    owner: str | int,
    *,
    description: str = "",
    storage_quota: int | None = None,
    policy_group: int | None = None,
) -> Team:
    """Create a team with its owner.

    None for the quota or the group means the default one; there may be no default group.
    Raises: errors.CREATE_TEAM, NameAmbiguous.
    """
    if storage_quota is None:
        storage_quota = rt.settings.get(keys.DEFAULT_STORAGE_QUOTA)
    with rt.transaction() as session:
        if policy_group is not None:
            locks.hold(session, locks.STORAGE_TOPOLOGY)
        # Two administrators may make a team for each other: the row of either is referred to.
        account = users.lock_named(session, owner, key_share=True)
        if policy_group is None:
            group_id = storage_queries.find_default_group_id(session)
        else:
            group_id = storage.get_assignable(session, policy_group).id
        team = teams.create(
            session,
            name,
            account,
            created_by=by.user_id,
            description=description,
            policy_group_id=group_id,
            storage_quota=storage_quota,
            now=rt.clock.now(),
        )
        sync_after_commit(rt, session, account.id)
        _notify(rt, session, by, account, "You were made an owner of", team)
        return _changed(rt, session, by, Action.ADMIN_CREATE_TEAM, team, {"owner_id": account.id})


def update(
    rt: Runtime,
    by: Operator,
    which: str | int,
    *,
    policy_group: str | int | None = None,
    expected_updated_at: datetime | None = None,
    **changes: Any,
) -> Team:
    """Change `name`, `description` or `storage_quota`, or the policy group: all or nothing.

    What already has its new value is left alone. `expected_updated_at` is the state the change is
    meant for; None accepts any.
    Raises: errors.UPDATE_TEAM, NameAmbiguous.
    """
    if "name" in changes:
        changes["name"] = teams.checked_name(changes["name"])
    with rt.transaction() as session:
        if policy_group is not None:
            locks.hold(session, locks.STORAGE_TOPOLOGY)
        team = teams.lock_unarchived(session, which)
        if expected_updated_at not in (None, team.updated_at):
            raise TeamChanged
        if policy_group is not None:
            changes["policy_group_id"] = storage.get_assignable(session, policy_group).id
        details: dict[str, Any] = {}
        for column, value in changes.items():
            if (previous := getattr(team, column)) != value:
                details |= {column: value, f"previous_{column}": previous}
                setattr(team, column, value)
        if not details:
            return team
        team.updated_at = rt.clock.now()
        return _changed(rt, session, by, Action.ADMIN_UPDATE_TEAM, team, details)


def add_member(rt: Runtime, by: Operator, which: str | int, who: str | int, role: TeamRole) -> Team:
    """Add an account to a team.

    Raises: errors.ADD_MEMBER, NameAmbiguous.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        team = teams.lock_unarchived(session, which)
        teams.add_member(session, team, account, role, rt.clock.now())
        sync_after_commit(rt, session, account.id)
        _notify(rt, session, by, account, f"You were made {ROLE_NAMES[role]} of", team)
        details = {"member_user_id": account.id, "role": role}
        return _changed(rt, session, by, Action.TEAM_MEMBER_ADD, team, details)


def set_role(
    rt: Runtime,
    by: Operator,
    which: str | int,
    who: str | int,
    role: TeamRole,
    *,
    expected_updated_at: datetime | None = None,
) -> Team:
    """Change the role of a team member; `expected_updated_at` as in `teams.service.set_role`.

    Raises: UserNotFound, TeamNotFound, NameAmbiguous, TeamArchived, TeamNotMember,
    TeamMemberChanged, LastTeamOwner.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        team = teams.lock_unarchived(session, which)
        by = by.rechecked(session)  # the change may end what the caller may do
        now, expected = rt.clock.now(), expected_updated_at
        previous = teams.set_role(session, team, account, role, now, expected_updated_at=expected)
        if previous is None:
            return team
        _notify(rt, session, by, account, f"You were made {ROLE_NAMES[role]} of", team)
        details = {"member_user_id": account.id, "previous_role": previous, "next_role": role}
        return _changed(rt, session, by, Action.TEAM_MEMBER_UPDATE, team, details)


def remove_member(rt: Runtime, by: Operator, which: str | int, who: str | int) -> Team:
    """Remove an account from a team.

    Whoever wants to leave can do so even if the team is archived, but for its last owner.
    Raises: UserNotFound, TeamNotFound, NameAmbiguous, TeamArchived, TeamNotMember, LastTeamOwner.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        lock = teams.lock_named if account.id == by.user_id else teams.lock_unarchived
        team = lock(session, which)
        by = by.rechecked(session)  # whoever leaves is no member afterwards
        role = teams.remove_member(session, team, account)
        sync_after_commit(rt, session, account.id)
        _notify(rt, session, by, account, "You were removed from", team)
        details = {"member_user_id": account.id, "removed_role": role}
        return _changed(rt, session, by, Action.TEAM_MEMBER_REMOVE, team, details)


def archive(rt: Runtime, by: Operator, which: str | int) -> Team:
    """Archive a team; idempotent. It is deleted `team_archive_retention_days` later.

    Raises: TeamNotFound, NameAmbiguous.
    """
    with rt.transaction() as session:
        team = teams.lock_named(session, which)
        if team.archived_at is not None:
            return team
        team.archived_at = team.updated_at = rt.clock.now()
        return _changed(rt, session, by, Action.ADMIN_ARCHIVE_TEAM, team, {})


def restore(rt: Runtime, by: Operator, which: str | int) -> Team:
    """Take an archived team into use again.

    Raises: errors.RESTORE_TEAM, NameAmbiguous.
    """
    with rt.transaction() as session:
        team = teams.lock_named(session, which)
        teams.require_restorable(rt, team)
        team.archived_at, team.updated_at = None, rt.clock.now()
        return _changed(rt, session, by, Action.ADMIN_RESTORE_TEAM, team, {})


def _changed(
    rt: Runtime,
    session: Session,
    by: Operator,
    action: Action,
    team: Team,
    details: dict[str, Any],
) -> Team:
    """Record a change and return the team, its owner and its members determined anew."""
    if by.is_team_member:
        action = BY_MEMBER.get(action, action)
    about = {"entity_id": team.id, "entity_name": team.name, "details": details}
    audit.record_by(rt, session, by, action, EntityType.TEAM, **about)
    session.refresh(team)
    return team


def _notify(
    rt: Runtime, session: Session, by: Operator, account: Account, event: str, team: Team
) -> None:
    """Tell an account what somebody else did; `event` is the sentence up to the team."""
    if account.id == by.user_id:
        return
    which = f"the team {team.name}" if PLAIN_NAME.fullmatch(team.name) else "a team"
    who = "a member of it" if by.is_team_member else "an administrator"
    users.notify_owner(rt, session, account, f"{event} {which} by {who}.")
