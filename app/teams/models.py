"""Tables of teams and memberships."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base, Id, UTCDateTime

MAX_NAME_LENGTH = 128


class TeamRole(StrEnum):
    """What a member may do in a team."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class Team(Base):
    """A workspace shared by accounts; an archived one is out of use and deleted after a while."""

    __tablename__ = "teams"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(MAX_NAME_LENGTH))
    description: Mapped[str] = mapped_column(String(512))
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="RESTRICT"), index=True)
    storage_used: Mapped[int] = mapped_column(BigInteger)
    storage_quota: Mapped[int] = mapped_column(BigInteger)
    policy_group_id: Mapped[int | None] = mapped_column(
        ForeignKey("storage_policy_groups.id", ondelete="SET NULL"), index=True
    )
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)
    archived_at: Mapped[datetime | None] = mapped_column(UTCDateTime)


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
