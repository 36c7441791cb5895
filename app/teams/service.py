"""Steps on teams; the use cases, which need accounts and policy groups, are in `team_admin`.

A team is locked before it is changed, so that checks and changes of its members cannot race.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.settings import keys
from app.store import bulk
from app.store.named import get_named
from app.teams import queries
from app.teams.errors import (
    LastTeamOwner,
    TeamArchived,
    TeamArchivedTooLong,
    TeamMemberChanged,
    TeamMemberDisabled,
    TeamMemberExists,
    TeamNameInvalid,
    TeamNotArchived,
    TeamNotFound,
    TeamNotMember,
    TeamOwnerUndeletable,
)
from app.teams.models import MAX_NAME_LENGTH, Team, TeamMember, TeamRole
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
