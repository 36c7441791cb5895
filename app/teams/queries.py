"""Statements on teams and memberships."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import case, delete, exists, func, insert, select, update
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Database, Reader
from app.teams.models import Team, TeamMember, TeamRole
from app.users.models import User

_OWNER_ID = (
    select(func.min(TeamMember.user_id))
    .where(TeamMember.team_id == Team.id, TeamMember.role == TeamRole.OWNER)
    .scalar_subquery()
)
_MEMBER_COUNT = (
    select(func.count()).where(TeamMember.team_id == Team.id).correlate(Team).scalar_subquery()
)
_INFO = select(
    Team.id,
    Team.name,
    Team.description,
    Team.created_by,
    _OWNER_ID,
    _MEMBER_COUNT,
    Team.storage_used,
    Team.storage_quota,
    Team.policy_group_id,
    Team.created_at,
    Team.updated_at,
    Team.archived_at,
)


class Member(NamedTuple):
    """A member of a team; `created_at` is when the account joined."""

    user_id: int
    username: str
    email: str
    role: str
    created_at: datetime


class TeamInfo(NamedTuple):
    """A team as it is shown; `owner_id` is the lowest of its owners' ids, None if it has none."""

    id: int
    name: str
    description: str
    created_by: int
    owner_id: int | None
    member_count: int
    storage_used: int
    storage_quota: int
    policy_group_id: int | None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


def list_members_among(
    database: Database, team_ids: Collection[int], user_ids: Collection[int]
) -> list[tuple[int, int]]:
    """Return (team id, user id) of every membership of one of these users in one of these teams.

    Archived teams count as empty.
    """
    statement = (
        select(TeamMember.team_id, TeamMember.user_id)
        .join(Team, Team.id == TeamMember.team_id)
        .where(
            TeamMember.team_id.in_(team_ids),
            TeamMember.user_id.in_(user_ids),
            Team.archived_at.is_(None),
        )
    )
    with database.reading() as session:
        return [(row[0], row[1]) for row in session.execute(statement)]


def find(reader: Reader, team_id: int) -> TeamInfo | None:
    """Return the team; None if there is none."""
    row = reader.execute(_INFO.where(Team.id == team_id)).one_or_none()
    return TeamInfo(*row) if row else None


def list_ids_by_name(reader: Reader, name: str) -> list[int]:
    """Return the ids of all teams with this name; names are not unique."""
    rows = reader.execute(select(Team.id).where(Team.name == name).order_by(Team.id))
    return [row[0] for row in rows]


def list_teams(reader: Reader, *, archived: bool) -> list[TeamInfo]:
    """Return the teams ordered by id; with `archived`, archived ones too."""
    statement = _INFO.order_by(Team.id)
    if not archived:
        statement = statement.where(Team.archived_at.is_(None))
    return [TeamInfo(*row) for row in reader.execute(statement)]


def list_owner_names(reader: Reader) -> dict[int, str]:
    """Return the usernames, by id, of all accounts that own a team."""
    owners = select(TeamMember.user_id).where(TeamMember.role == TeamRole.OWNER)
    rows = reader.execute(select(User.id, User.username).where(User.id.in_(owners)))
    return {row[0]: row[1] for row in rows}


def list_members(reader: Reader, team_id: int) -> list[Member]:
    """Return the members of a team by role (owners, administrators, others), then by id."""
    rank = case({TeamRole.OWNER: 0, TeamRole.ADMIN: 1}, value=TeamMember.role, else_=2)
    statement = (
        select(User.id, User.username, User.email, TeamMember.role, TeamMember.created_at)
        .join(TeamMember, TeamMember.user_id == User.id)
        .where(TeamMember.team_id == team_id)
        .order_by(rank, User.id)
    )
    return [Member(*row) for row in reader.execute(statement)]


def lock(session: Session, team_id: int) -> None:
    """Lock the team's row until the transaction ends."""
    session.execute(select(Team.id).where(Team.id == team_id).with_for_update()).all()


def lock_owned(session: Session, user_id: int) -> list[int]:
    """Lock the unarchived teams that this account owns; return their ids."""
    statement = (
        select(Team.id)
        .join(TeamMember, TeamMember.team_id == Team.id)
        .where(
            TeamMember.user_id == user_id,
            TeamMember.role == TeamRole.OWNER,
            Team.archived_at.is_(None),
        )
        .order_by(Team.id)
        .with_for_update(of=Team)
    )
    return list(session.scalars(statement))


def add(session: Session, **columns: Any) -> int:
    """Insert a team and return its id."""
    team_id: int = session.execute(insert(Team).returning(Team.id), columns).scalar_one()
    return team_id


def set_columns(session: Session, team_id: int, now: datetime, **values: Any) -> None:
    """Update columns of a team."""
    statement = update(Team).where(Team.id == team_id).values(updated_at=now, **values)
    session.execute(statement.execution_options(synchronize_session=False))


def find_role(session: Session, team_id: int, user_id: int) -> str | None:
    """Return the account's role in the team; None if it is not a member."""
    statement = select(TeamMember.role).where(
        TeamMember.team_id == team_id, TeamMember.user_id == user_id
    )
    return session.execute(statement).scalar()


def add_member(session: Session, team_id: int, user_id: int, role: TeamRole, now: datetime) -> None:
    """Insert a membership."""
    columns = {
        "team_id": team_id,
        "user_id": user_id,
        "role": role,
        "created_at": now,
        "updated_at": now,
    }
    session.execute(insert(TeamMember), columns)


def set_role(session: Session, team_id: int, user_id: int, role: TeamRole, now: datetime) -> None:
    """Change a member's role."""
    this = TeamMember.team_id == team_id, TeamMember.user_id == user_id
    statement = update(TeamMember).where(*this).values(role=role, updated_at=now)
    bulk.change(session, statement)


def remove_member(session: Session, team_id: int, user_id: int) -> bool:
    """Delete a membership; False if there was none."""
    statement = delete(TeamMember).where(
        TeamMember.team_id == team_id, TeamMember.user_id == user_id
    )
    return bulk.change(session, statement) == 1


def has_other_owner(session: Session, team_id: int, user_id: int) -> bool:
    """Return whether an account other than this one owns the team."""
    others = select(TeamMember.id).where(
        TeamMember.team_id == team_id,
        TeamMember.role == TeamRole.OWNER,
        TeamMember.user_id != user_id,
    )
    return bool(session.execute(select(exists(others))).scalar())


def has_created_any(session: Session, user_id: int) -> bool:
    """Return whether any existing team, archived or not, was created by this account."""
    return bool(
        session.execute(select(exists(select(Team.id).where(Team.created_by == user_id)))).scalar()
    )


def delete_archived(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` teams archived before a time; return how many."""
    outdated = select(Team.id).where(Team.archived_at < before).limit(most)
    return bulk.change(session, delete(Team).where(Team.id.in_(outdated)))
