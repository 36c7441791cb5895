"""Steps on teams; the use cases, which need accounts and policy groups, are in `administration`.

A team is locked (`queries.lock`) before it is changed, so that checks and changes of its members
cannot race.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from app.core.database.database import Reader
from app.core.texts import shortened, typed_id
from app.teams import queries
from app.teams.errors import (
    LastTeamOwner,
    TeamAmbiguous,
    TeamArchived,
    TeamCreatorUndeletable,
    TeamMemberDisabled,
    TeamMemberExists,
    TeamNameInvalid,
    TeamNotFound,
    TeamNotMember,
    TeamOwnerUndeletable,
)
from app.teams.models import MAX_NAME_LENGTH, TeamRole
from app.teams.queries import TeamInfo
from app.users.models import Account, Status


def create(
    session: Session,
    name: str,
    owner: Account,
    *,
    policy_group_id: int | None,
    storage_quota: int,
    now: datetime,
) -> TeamInfo:
    """Create a team with its owner as the first member.

    Raises: TeamNameInvalid, TeamMemberDisabled.
    """
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise TeamNameInvalid
    _require_active(owner)
    team_id = queries.add(
        session,
        name=name,
        description="",
        created_by=owner.id,
        storage_used=0,
        storage_quota=storage_quota,
        policy_group_id=policy_group_id,
        created_at=now,
        updated_at=now,
    )
    queries.add_member(session, team_id, owner.id, TeamRole.OWNER, now)
    return get(session, team_id)


def get(reader: Reader, team_id: int) -> TeamInfo:
    """Return a team.

    Raises: TeamNotFound.
    """
    info = queries.find(reader, team_id)
    if info is None:
        raise TeamNotFound
    return info


def named(reader: Reader, typed: str) -> TeamInfo:
    """Return the team with the id or name an operator typed; digits are taken for an id first.

    Raises: TeamNotFound; TeamAmbiguous if several teams have this name.
    """
    team_id = typed_id(typed)
    info = None if team_id is None else queries.find(reader, team_id)
    if info is not None:
        return info
    ids = queries.list_ids_by_name(reader, typed.strip())
    if len(ids) > 1:
        which = " or ".join(map(str, ids))
        raise TeamAmbiguous(f"Several teams are called {shortened(typed)}; give the id, {which}.")
    if not ids:
        raise TeamNotFound(f"There is no team {shortened(typed)}.")
    return get(reader, ids[0])


def lock_unarchived(session: Session, typed: str) -> TeamInfo:
    """Lock an unarchived team until the transaction ends and return it.

    Raises: TeamNotFound, TeamAmbiguous, TeamArchived.
    """
    info = lock_named(session, typed)
    if info.archived_at is not None:
        raise TeamArchived
    return info


def lock_named(session: Session, typed: str) -> TeamInfo:
    """Like `lock_unarchived`, but for archived teams too."""
    team_id = named(session, typed).id
    queries.lock(session, team_id)
    return get(session, team_id)


def add_member(
    session: Session, team: TeamInfo, account: Account, role: TeamRole, now: datetime
) -> None:
    """Add an account to a locked team.

    Raises: TeamMemberDisabled, TeamMemberExists.
    """
    _require_active(account)
    if queries.find_role(session, team.id, account.id) is not None:
        raise TeamMemberExists
    queries.add_member(session, team.id, account.id, role, now)


def remove_member(session: Session, team: TeamInfo, account: Account) -> None:
    """Remove an account from a locked team; it receives none of the team's later events.

    Raises: TeamNotMember, LastTeamOwner.
    """
    if _role_of(session, team, account) == TeamRole.OWNER:
        _require_other_owner(session, team, account)
    queries.remove_member(session, team.id, account.id)


def set_role(
    session: Session, team: TeamInfo, account: Account, role: TeamRole, now: datetime
) -> bool:
    """Change the role of a member of a locked team; False if the member has that role already.

    Raises: TeamNotMember, LastTeamOwner.
    """
    before = _role_of(session, team, account)
    if before == role:
        return False
    if before == TeamRole.OWNER:
        _require_other_owner(session, team, account)
    queries.set_role(session, team.id, account.id, role, now)
    return True


def require_deletable(session: Session, user_id: int) -> None:
    """Refuse the deletion of an account that a team still needs; the caller has locked the account.

    Raises: TeamCreatorUndeletable; TeamOwnerUndeletable, for an unarchived team's last owner.
    """
    if queries.has_created_any(session, user_id):
        raise TeamCreatorUndeletable
    if not all(
        queries.has_other_owner(session, team_id, user_id)
        for team_id in queries.lock_owned(session, user_id)
    ):
        raise TeamOwnerUndeletable


def _role_of(session: Session, team: TeamInfo, account: Account) -> str:
    role = queries.find_role(session, team.id, account.id)
    if role is None:
        raise TeamNotMember
    return role


def _require_other_owner(session: Session, team: TeamInfo, account: Account) -> None:
    if not queries.has_other_owner(session, team.id, account.id):
        raise LastTeamOwner


def _require_active(account: Account) -> None:
    if account.status != Status.ACTIVE:
        raise TeamMemberDisabled
