"""Statements on teams and memberships."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, case, delete, func, or_, select
from sqlalchemy.orm import Session

from app.core.texts import folded, typed_id
from app.store import bulk
from app.store.database import Database
from app.store.paging import Page, Paging, read_items, rows_of
from app.store.search import has_part
from app.teams.models import ManagedTeam, Membership, OwnTeam, Team, TeamMember, TeamRole
from app.users import queries as users_queries
from app.users.models import ACCOUNT_COLUMNS, Account, Status, User, with_profile

_RANK = case({TeamRole.OWNER: 0, TeamRole.ADMIN: 1}, value=TeamMember.role, else_=2)
TEAM_COLUMNS: dict[str, Any] = {
    "id": Team.id,
    "name": Team.name,
    "storage_used": Team.storage_used,
    "storage_quota": Team.storage_quota,
    "created_at": Team.created_at,
    "updated_at": Team.updated_at,
    "archived_at": Team.archived_at,
}
# The role orders owners first.
MEMBER_COLUMNS: dict[str, Any] = {
    "id": TeamMember.id,
    "username": User.username_key,
    "email": User.email,
    "role": _RANK,
    "status": User.status,
    "created_at": TeamMember.created_at,
    "updated_at": TeamMember.updated_at,
}


@dataclass(frozen=True)
class MemberFilter:
    """A filter for members; None matches all. `keyword` is a part of a name, or an id."""

    keyword: str | None = None
    role: TeamRole | None = None
    status: Status | None = None


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


def list_own(
    session: Session, user_id: int, *, archived: bool, keyword: str | None, limit: int, offset: int
) -> list[OwnTeam]:
    """Return a part of the account's teams, by id: the archived ones, or the others.

    `keyword` is a part of the name, in any case.
    """
    statement = (
        with_profile(
            select(Team, TeamMember.role, *ACCOUNT_COLUMNS)
            .select_from(TeamMember)
            .join(Team, Team.id == TeamMember.team_id)
            .outerjoin(User, User.id == Team.created_by)
        )
        .where(
            TeamMember.user_id == user_id,
            Team.archived_at.is_not(None) if archived else Team.archived_at.is_(None),
            has_part((keyword or "").strip(), Team.name, Team.name_folded),
        )
        .order_by(Team.id)
        .limit(limit)
        .offset(offset)
    )
    return [
        OwnTeam(team, role, Account(*creator) if team.created_by is not None else None)
        for team, role, *creator in session.execute(statement)
    ]


def read_page(session: Session, paging: Paging, *, archived: bool, keyword: str | None) -> Page:
    """Return a page of teams: the archived ones, or the others.

    `keyword` is a part of the name, or the id.
    """
    matching = select(Team.id).where(
        Team.archived_at.is_not(None) if archived else Team.archived_at.is_(None)
    )
    if keyword is not None:
        by_id = [Team.id == team_id] if (team_id := typed_id(keyword)) is not None else []
        matching = matching.where(or_(has_part(keyword, Team.name, Team.name_folded), *by_id))
    page = read_items(session, matching, TEAM_COLUMNS, paging, rows_of(session, Team))
    makers = {team.created_by for team in page.items if team.created_by is not None}
    creators = users_queries.list_named(session, makers)
    teams = [ManagedTeam(team, creators.get(team.created_by or 0)) for team in page.items]
    return replace(page, items=teams)


def read_members(session: Session, paging: Paging, team_id: int, chosen: MemberFilter) -> Page:
    """Return a page of the members of a team."""
    matching = select(TeamMember.id).join(User, User.id == TeamMember.user_id)
    matching = matching.where(TeamMember.team_id == team_id, *_conditions(chosen))

    def find(ids: Sequence[int]) -> dict[int, Membership]:
        return {row.member.id: row for row in _memberships(session, TeamMember.id.in_(ids))}

    return read_items(session, matching, MEMBER_COLUMNS, paging, find)


def find_membership(session: Session, team_id: int, user_id: int) -> Membership | None:
    """Return a member of a team with its account; None if the account is not a member."""
    this = TeamMember.team_id == team_id, TeamMember.user_id == user_id
    return next(_memberships(session, *this), None)


def count_roles(session: Session, team_id: int) -> dict[str, int]:
    """Return how many members of a team have each role."""
    counting = select(TeamMember.role, func.count()).where(TeamMember.team_id == team_id)
    return {row[0]: row[1] for row in session.execute(counting.group_by(TeamMember.role))}


def _conditions(chosen: MemberFilter) -> Iterator[Any]:
    if chosen.keyword is not None:
        part = folded(chosen.keyword)
        names = (name.contains(part, autoescape=True) for name in (User.username_key, User.email))
        by_id = [User.id == user_id] if (user_id := typed_id(part)) is not None else []
        yield or_(*names, *by_id)
    if chosen.role is not None:
        yield TeamMember.role == chosen.role
    if chosen.status is not None:
        yield User.status == chosen.status


def _memberships(session: Session, *conditions: Any) -> Iterator[Membership]:
    statement = with_profile(
        select(TeamMember, *ACCOUNT_COLUMNS)
        .select_from(TeamMember)
        .join(User, User.id == TeamMember.user_id)
    )
    for member, *account in session.execute(statement.where(*conditions)):
        yield Membership(member, Account(*account))


def list_members(session: Session, team_id: int) -> Sequence[Row[int, str, str, str, datetime]]:
    """Return the members of a team by role (owners, administrators, others), then by id.

    `created_at` is when the account joined.
    """
    statement = (
        select(
            TeamMember.user_id, User.username, User.email, TeamMember.role, TeamMember.created_at
        )
        .join(User, User.id == TeamMember.user_id)
        .where(TeamMember.team_id == team_id)
        .order_by(_RANK, User.id)
    )
    return session.execute(statement).all()


def lock_related(session: Session, user_id: int) -> Sequence[Team]:
    """Lock the teams that this account owns or created, and return them, by id."""
    owned = select(TeamMember.team_id).where(
        TeamMember.user_id == user_id, TeamMember.role == TeamRole.OWNER
    )
    theirs = or_(Team.created_by == user_id, Team.id.in_(owned))
    statement = select(Team).where(theirs).order_by(Team.id).with_for_update(of=Team)
    return session.scalars(statement).all()


def find_member(session: Session, team_id: int, user_id: int) -> TeamMember | None:
    """Return the account's membership in the team; None if it is not a member."""
    this = TeamMember.team_id == team_id, TeamMember.user_id == user_id
    return session.scalars(select(TeamMember).where(*this)).one_or_none()


def is_last_owner(session: Session, team_id: int, user_id: int) -> bool:
    """Return whether this account alone owns the team."""
    owners = select(TeamMember.user_id).where(
        TeamMember.team_id == team_id, TeamMember.role == TeamRole.OWNER
    )
    return session.scalars(owners.limit(2)).all() == [user_id]


def delete_archived(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` teams archived before a time; return how many."""
    outdated = select(Team.id).where(Team.archived_at < before).limit(most)
    return bulk.change(session, delete(Team).where(Team.id.in_(outdated)))
