"""Statements on teams and memberships."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import Row, case, delete, select
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Database
from app.teams.models import Team, TeamMember, TeamRole
from app.users.models import User


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


def list_teams(session: Session, *, archived: bool) -> Sequence[Team]:
    """Return the teams ordered by id; with `archived`, archived ones too."""
    statement = select(Team).order_by(Team.id)
    if not archived:
        statement = statement.where(Team.archived_at.is_(None))
    return session.scalars(statement).all()


def list_members(session: Session, team_id: int) -> Sequence[Row[int, str, str, str, datetime]]:
    """Return the members of a team by role (owners, administrators, others), then by id.

    `created_at` is when the account joined.
    """
    rank = case({TeamRole.OWNER: 0, TeamRole.ADMIN: 1}, value=TeamMember.role, else_=2)
    statement = (
        select(
            TeamMember.user_id, User.username, User.email, TeamMember.role, TeamMember.created_at
        )
        .join(User, User.id == TeamMember.user_id)
        .where(TeamMember.team_id == team_id)
        .order_by(rank, User.id)
    )
    return session.execute(statement).all()


def lock_owned(session: Session, user_id: int) -> Sequence[int]:
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
    return session.scalars(statement).all()


def find_member(session: Session, team_id: int, user_id: int) -> TeamMember | None:
    """Return the account's membership in the team; None if it is not a member."""
    this = TeamMember.team_id == team_id, TeamMember.user_id == user_id
    return session.scalars(select(TeamMember).where(*this)).one_or_none()


def has_other_owner(session: Session, team_id: int, user_id: int) -> bool:
    """Return whether an account other than this one owns the team."""
    others = select(TeamMember.id).where(
        TeamMember.team_id == team_id,
        TeamMember.role == TeamRole.OWNER,
        TeamMember.user_id != user_id,
    )
    return session.scalar(others.limit(1)) is not None


def has_created_any(session: Session, user_id: int) -> bool:
    """Return whether any existing team, archived or not, was created by this account."""
    return session.scalar(select(Team.id).where(Team.created_by == user_id).limit(1)) is not None


def delete_archived(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` teams archived before a time; return how many."""
    outdated = select(Team.id).where(Team.archived_at < before).limit(most)
    return bulk.change(session, delete(Team).where(Team.id.in_(outdated)))
