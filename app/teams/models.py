"""Tables of teams and memberships."""

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    String,
    Text,
    UniqueConstraint,
    func,
    select,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column, validates

from app.store.db import Base, Id, UTCDateTime
from app.store.search import folded_column
from app.users.models import Account, User

MAX_NAME_LENGTH = 128
MAX_DESCRIPTION_LENGTH = 512


class TeamRole(StrEnum):
    """What a member may do in a team."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class TeamMember(Base):
    """One account's membership in one team."""

    __tablename__ = "team_members"
    __table_args__ = (
        UniqueConstraint("team_id", "user_id"),
        CheckConstraint("role IN ('owner', 'admin', 'member')", name="role"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    role: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)


def _owner(team_id: Any, column: Any) -> Any:
    """Return a column of the first owner of a team, as a subquery."""
    return (
        select(column)
        .join_from(TeamMember, User, User.id == TeamMember.user_id)
        .where(TeamMember.team_id == team_id, TeamMember.role == TeamRole.OWNER)
        .order_by(User.id)
        .limit(1)
        .correlate_except(TeamMember, User)
        .scalar_subquery()
    )


class Team(Base):
    """A workspace shared by accounts; an archived one is out of use and deleted after a while.

    `name_folded` follows the name, see `store.search`. `created_by` is who made it: None for the
    command line, and once that account is deleted. Of several owners, `owner_id` and `owner_name`
    are of the one with the lowest id. They and `member_count` are computed when a team is loaded or
    refreshed.
    """

    __tablename__ = "teams"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(MAX_NAME_LENGTH))
    name_folded: Mapped[str | None] = mapped_column(Text)
    description: Mapped[str] = mapped_column(String(MAX_DESCRIPTION_LENGTH))
    created_by: Mapped[int | None] = mapped_column(
        ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
    storage_used: Mapped[int] = mapped_column(BigInteger)
    storage_quota: Mapped[int] = mapped_column(BigInteger)
    policy_group_id: Mapped[int | None] = mapped_column(
        ForeignKey("storage_policy_groups.id", ondelete="SET NULL"), index=True
    )
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)
    archived_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    owner_id: Mapped[int | None] = column_property(_owner(id, TeamMember.user_id))
    owner_name: Mapped[str | None] = column_property(_owner(id, User.username))
    member_count: Mapped[int] = column_property(
        select(func.count(TeamMember.id))
        .where(TeamMember.team_id == id)
        .correlate_except(TeamMember)
        .scalar_subquery()
    )

    @validates("name")
    def _fold(self, _member: str, name: str) -> str:
        self.name_folded = folded_column(name)
        return name


class OwnTeam(NamedTuple):
    """A team as one of its members sees it."""

    team: Team
    my_role: str
    creator: Account | None


class ManagedTeam(NamedTuple):
    """A team as administrators see it."""

    team: Team
    creator: Account | None


class Membership(NamedTuple):
    """A member with its account."""

    member: TeamMember
    account: Account
