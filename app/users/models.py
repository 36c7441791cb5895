"""Accounts and their profiles (spec 04 §5.1; decisions A4, A7, A13)."""

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, Select, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base, Id, UTCDateTime, columns_of


class Role(StrEnum):
    """What an account may do."""

    ADMIN = "admin"
    USER = "user"


class Status(StrEnum):
    """Whether an account may be used."""

    ACTIVE = "active"
    DISABLED = "disabled"


class Standing(StrEnum):
    """Whether an account can be used at all: its status, and whether it was activated (A4)."""

    ACTIVE = "active"
    PENDING = "pending"
    DISABLED = "disabled"


FIRST_SESSION_VERSION = 1


class AvatarSource(StrEnum):
    """Where an account's avatar comes from (decision A18)."""

    UPLOADED = "uploaded"
    GRAVATAR = "gravatar"
    NONE = "none"


class User(Base):
    """One account.

    `username_key` and `email` are lower case and carry the uniqueness; `username` is as typed.
    `password_hash` is None while the account has no usable password. `session_version` advances
    whenever everything issued before must stop working.
    """

    __tablename__ = "users"
    __table_args__ = (
        Index(
            "ix_users_role_admin",
            "role",
            sqlite_where=text("role = 'admin'"),
            postgresql_where=text("role = 'admin'"),
        ),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    username: Mapped[str] = mapped_column(String(64))
    username_key: Mapped[str] = mapped_column(String(64), unique=True)
    email: Mapped[str] = mapped_column(String(255), unique=True)
    pending_email: Mapped[str | None] = mapped_column(String(255), unique=True)
    password_hash: Mapped[str | None] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16))
    must_change_password: Mapped[bool]
    session_version: Mapped[int] = mapped_column(BigInteger)
    activated_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    email_verified_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    storage_used: Mapped[int] = mapped_column(BigInteger)
    storage_quota: Mapped[int] = mapped_column(BigInteger)
    policy_group_id: Mapped[int | None] = mapped_column(
        ForeignKey("storage_policy_groups.id", ondelete="SET NULL"), index=True
    )
    preferences: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)


class UserProfile(Base):
    """How an account shows itself; a missing row means no name and no avatar.

    `avatar_version` advances with every change of the avatar. `avatar_key` names the folder of the
    uploaded files, which stay when the source is switched away; None while there are none.
    """

    __tablename__ = "user_profiles"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    display_name: Mapped[str | None] = mapped_column(String(64))
    avatar_source: Mapped[str] = mapped_column(String(16))
    avatar_key: Mapped[str | None] = mapped_column(String(512))
    avatar_version: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)


class Account(NamedTuple):
    """A read copy of an account and its profile; a name that both have is the account's."""

    id: int
    username: str
    email: str
    email_verified_at: datetime | None
    pending_email: str | None
    role: str
    status: str
    must_change_password: bool
    storage_used: int
    storage_quota: int
    policy_group_id: int | None
    activated_at: datetime | None
    session_version: int
    created_at: datetime
    updated_at: datetime
    display_name: str | None
    avatar_source: str | None
    avatar_key: str | None
    avatar_version: int | None
    preferences: str | None

    @property
    def standing(self) -> Standing:
        """Return what the status and the activation come to."""
        if self.status == Status.ACTIVE and self.activated_at is None:
            return Standing.PENDING
        return Standing(self.status)


ACCOUNT_COLUMNS = columns_of(Account, User, UserProfile)


def with_profile(statement: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """Return a SELECT from accounts that has their ACCOUNT_COLUMNS, with the profiles there are."""
    return statement.outerjoin(UserProfile, UserProfile.user_id == User.id)
