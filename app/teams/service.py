"""Steps on teams; the use cases, which need accounts and policy groups, are in `team_admin`.

A team is locked before it is changed, so that checks and changes of its members cannot race.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.settings import keys
from app.store import bulk
from app.store.named import get_named
from app.store.paging import Paging
from app.teams import queries
from app.teams.errors import (
    LastTeamOwner,
    LastTeamOwnerKept,
    NotYourTeam,
    TeamArchived,
    TeamArchivedTooLong,
    TeamManagerRequired,
    TeamMemberChanged,
    TeamMemberDisabled,
    TeamMemberExists,
    TeamMemberNotFound,
    TeamNameInvalid,
    TeamNotArchived,
    TeamNotFound,
    TeamNotMember,
    TeamOwnerRequired,
    TeamOwnerUndeletable,
)
from app.teams.models import MAX_NAME_LENGTH, Membership, Team, TeamMember, TeamRole
from app.users.errors import UserNotFound
from app.users.models import Account, Status

# In the refusal of a deletion.
MAX_NAMED = 5


def create(
    session: Session,
    name: str,
    owner: Account,
    *,
    created_by: int | None,
    description: str = "",
    policy_group_id: int | None,
    storage_quota: int,
    now: datetime,
) -> Team:
    """Create a team with its owner as the first member; `created_by` is who makes it.

    Raises: TeamNameInvalid, TeamMemberDisabled.
    """
    team = Team(
        name=checked_name(name),
        description=description,
        created_by=created_by,
        storage_used=0,
        storage_quota=storage_quota,
        policy_group_id=policy_group_id,
        created_at=now,
        updated_at=now,
    )
    session.add(team)
    session.flush()
    add_member(session, team, owner, TeamRole.OWNER, now)
    return team


def checked_name(name: str) -> str:
    """Return the name without surrounding spaces.

    Raises: TeamNameInvalid.
    """
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise TeamNameInvalid
    return name


def named(session: Session, typed: str | int) -> Team:
    """Return the team with the id or name an operator typed.

    Raises: TeamNotFound, NameAmbiguous.
    """
    return get_named(session, Team, typed, TeamNotFound, "team", "teams")


def lock_unarchived(session: Session, typed: str | int) -> Team:
    """Lock an unarchived team until the transaction ends and return it.

    Raises: TeamNotFound, NameAmbiguous, TeamArchived.
    """
    team = lock_named(session, typed)
    if team.archived_at is not None:
        raise TeamArchived
    return team


def lock_named(session: Session, typed: str | int) -> Team:
    """Like `lock_unarchived`, but for archived teams too."""
    team_id = named(session, typed).id
    team = session.get(Team, team_id, populate_existing=True, with_for_update=True)
    if team is None:  # deleted in between
        raise TeamNotFound
    return team


def add_member(
    session: Session, team: Team, account: Account, role: TeamRole, now: datetime
) -> None:
    """Add an account to a locked team.

    Raises: TeamMemberDisabled, TeamMemberExists.
    """
    if account.status != Status.ACTIVE:
        raise TeamMemberDisabled
    if queries.find_member(session, team.id, account.id):
        raise TeamMemberExists
    session.add(
        TeamMember(team_id=team.id, user_id=account.id, role=role, created_at=now, updated_at=now)
    )


def remove_member(session: Session, team: Team, account: Account) -> str:
    """Remove an account from a locked team; it receives none of the team's later events.

    Return the role it had.

    Raises: TeamNotMember, LastTeamOwner.
    """
    member = _get_member(session, team, account)
    _require_other_owner(session, member)
    session.delete(member)
    return member.role


def set_role(
    session: Session,
    team: Team,
    account: Account,
    role: TeamRole,
    now: datetime,
    *,
    expected_updated_at: datetime | None = None,
) -> str | None:
    """Change the role of a member of a locked team; return the one before, None if it is the same.

    `expected_updated_at` is the state the change is meant for; None accepts any.
    Raises: TeamNotMember, TeamMemberChanged, LastTeamOwner.
    """
    member = _get_member(session, team, account)
    if expected_updated_at not in (None, member.updated_at):
        raise TeamMemberChanged
    previous = member.role
    if previous == role:
        return None
    _require_other_owner(session, member)
    member.role, member.updated_at = role, now
    return previous


def read_members(session: Session, paging: Paging, team_id: int, **chosen: Any) -> dict[str, Any]:
    """Return a page of a team's members, with the counts of the whole team; `chosen` filters.

    `manager_count` is of owners and administrators. Raises: TeamNotFound.
    """
    named(session, team_id)
    page = queries.read_members(session, paging, team_id, queries.MemberFilter(**chosen))
    counts = queries.count_roles(session, team_id)
    owners, administrators = counts.get(TeamRole.OWNER, 0), counts.get(TeamRole.ADMIN, 0)
    return {**vars(page), "owner_count": owners, "manager_count": owners + administrators}


def get_membership(rt: Runtime, team_id: int, user_id: int) -> Membership:
    """Return a member with its account, as it is now.

    Raises: TeamMemberNotFound.
    """
    with rt.reading() as session:
        found = queries.find_membership(session, team_id, user_id)
    if found is None:  # removed again meanwhile
        raise TeamMemberNotFound
    return found


@contextmanager
def addressed() -> Iterator[None]:
    """Raise what fits a member who is addressed by a path, where commands have other codes.

    Raises: TeamMemberNotFound, LastTeamOwnerKept.
    """
    try:
        yield
    except (TeamNotMember, UserNotFound):
        raise TeamMemberNotFound from None
    except LastTeamOwner:
        raise LastTeamOwnerKept from None


def require_member(session: Session, team_id: int, user_id: int) -> TeamRole:
    """Return what an account is in a team, archived or not.

    Raises: TeamNotFound, NotYourTeam.
    """
    member = queries.find_member(session, named(session, team_id).id, user_id)
    if member is None:
        raise NotYourTeam
    return TeamRole(member.role)


def require_manager(session: Session, team_id: int, user_id: int) -> TeamRole:
    """Like `require_member`, for what owners and administrators of a team may do.

    Raises: TeamNotFound, NotYourTeam, TeamManagerRequired.
    """
    role = require_member(session, team_id, user_id)
    if role is TeamRole.MEMBER:
        raise TeamManagerRequired
    return role


def require_owner(session: Session, team_id: int, user_id: int) -> TeamRole:
    """Like `require_member`, for what only owners may do.

    Raises: TeamNotFound, NotYourTeam, TeamOwnerRequired.
    """
    role = require_member(session, team_id, user_id)
    if role is not TeamRole.OWNER:
        raise TeamOwnerRequired
    return role


def require_deletable(session: Session, user_id: int) -> None:
    """Refuse the deletion of an unarchived team's last owner; the caller has locked the account.

    Raises: TeamOwnerUndeletable.
    """
    # All whose rows the deletion changes, in one order, so that two deletions cannot deadlock.
    related = queries.lock_related(session, user_id)
    in_use = [team for team in related if team.archived_at is None]
    if alone := [team for team in in_use if queries.is_last_owner(session, team.id, user_id)]:
        raise TeamOwnerUndeletable(f"{TeamOwnerUndeletable.message[:-1]}: {_named(alone)}.")


def require_restorable(rt: Runtime, team: Team) -> None:
    """Refuse to restore a locked team that is in use, or that is about to be deleted.

    Raises: TeamNotArchived, TeamArchivedTooLong.
    """
    if team.archived_at is None:
        raise TeamNotArchived
    if team.archived_at < _kept_since(rt):
        raise TeamArchivedTooLong


def delete_archived(rt: Runtime) -> int:
    """Delete teams archived longer than `team_archive_retention_days` ago; return how many."""
    return bulk.delete_in_batches(rt, queries.delete_archived, _kept_since(rt))


def _kept_since(rt: Runtime) -> datetime:
    """Return the time before which a team must have been archived to be deleted now."""
    return rt.clock.now() - timedelta(days=rt.settings.get(keys.TEAM_ARCHIVE_RETENTION_DAYS))


def _named(teams: Sequence[Team]) -> str:
    names = [team.name for team in teams[:MAX_NAMED]]
    return ", ".join(names + (["and more"] if len(teams) > MAX_NAMED else []))


def _get_member(session: Session, team: Team, account: Account) -> TeamMember:
    member = queries.find_member(session, team.id, account.id)
    if member is None:
        raise TeamNotMember
    return member


def _require_other_owner(session: Session, member: TeamMember) -> None:
    if queries.is_last_owner(session, member.team_id, member.user_id):
        raise LastTeamOwner
