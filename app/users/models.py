"""Tables of accounts and their profiles."""

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, Select, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, Id, UTCDateTime, columns_of
from app.users import stored_preferences


class Role(StrEnum):
    """What an account may do."""

    ADMIN = "admin"
    USER = "user"


class Status(StrEnum):
    """The status column: whether an operator has disabled the account."""

    ACTIVE = "active"
    DISABLED = "disabled"


class Standing(StrEnum):
    """Whether an account can be used: its status and activation combined."""

    ACTIVE = "active"
    PENDING = "pending"
    DISABLED = "disabled"


FIRST_SESSION_VERSION = 1
# Of an account or a team: what JavaScript still counts exactly.
MAX_QUOTA_BYTES = 2**53


class AvatarSource(StrEnum):
    """Where an account's avatar comes from."""

    UPLOADED = "uploaded"
    GRAVATAR = "gravatar"
    NONE = "none"


def _index_of_few(name: str, condition: str) -> Index:
    """Return an index of the accounts that meet a condition."""
    where = text(condition)
    return Index(name, "id", sqlite_where=where, postgresql_where=where)


class User(Base):
    """One account.

    `username_key` and `email` are lower case and unique; `username` is as typed. `password_hash` is
    None while the account has no usable password. `session_version` is incremented to invalidate
    everything issued before. `email_verified_at` is when a mailed link was opened, be it by a mail
    scanner; `proven_at` is when the owner of the mailbox acted in person, as docs/security.md says.
    """

    __tablename__ = "users"
    __table_args__ = (
        Index(
            "ix_users_role_admin",
            "role",
            sqlite_where=text("role = 'admin'"),
            postgresql_where=text("role = 'admin'"),
        ),
        # What an overview counts.
        Index("ix_users_created_at", "created_at", "id"),
        _index_of_few("ix_users_disabled", "status = 'disabled'"),
        _index_of_few("ix_users_pending", "activated_at IS NULL"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    username: Mapped[str] = mapped_column(String(64))
    username_key: Mapped[str] = mapped_column(String(64), unique=True)
    email: Mapped[str] = mapped_column(String(255), unique=True)
    pending_email: Mapped[str | None] = mapped_column(String(255), unique=True)
    password_hash: Mapped[str | None] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(16), default=Role.USER)
    status: Mapped[str] = mapped_column(String(16), default=Status.ACTIVE)
    must_change_password: Mapped[bool] = mapped_column(default=False)
    session_version: Mapped[int] = mapped_column(BigInteger, default=FIRST_SESSION_VERSION)
    activated_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    email_verified_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    proven_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    storage_used: Mapped[int] = mapped_column(BigInteger, default=0)
    storage_quota: Mapped[int] = mapped_column(BigInteger, default=0)
    policy_group_id: Mapped[int | None] = mapped_column(
        ForeignKey("storage_policy_groups.id", ondelete="SET NULL"), index=True
    )
    preferences: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)


class PasswordHashKind(Base):
    """A kind of password hash that accounts have, by a sample that is nobody's hash.

    The most expensive one decides what a refused password costs, whatever the account.
    """

    __tablename__ = "password_hash_kinds"

    sample: Mapped[str] = mapped_column(String(255), primary_key=True)


class PasswordSecret(Base):
    """What another service mixed into the passwords of accounts that came from it, encrypted.

    Hashes that need it begin with its id, see `crypto.foreign_hashes`.
    """

    __tablename__ = "password_secrets"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    sealed: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)

    @property
    def row_name(self) -> str:
        """The name under which it is encrypted."""
        return f"password_secret:{self.id}"


class UserProfile(Base):
    """An account's public profile; a missing row means no display name and no avatar.

    `display_name_folded` is for searching, see `store.search`.
    `avatar_version` is incremented by every change of the avatar. `avatar_key` names the folder of
    the uploaded files, which are kept when another source is chosen; None if there are none.
    """

    __tablename__ = "user_profiles"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    display_name: Mapped[str | None] = mapped_column(String(64))
    display_name_folded: Mapped[str | None] = mapped_column(Text)
    avatar_source: Mapped[str] = mapped_column(String(16))
    avatar_key: Mapped[str | None] = mapped_column(String(512))
    avatar_version: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)


class Account(NamedTuple):
    """A read-only copy of an account and its profile; columns that both have are the account's."""

    id: int
    username: str
    email: str
    email_verified_at: datetime | None
    proven_at: datetime | None
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
    def is_activated(self) -> bool:
        """Whether the owner has answered the activation mail, if there was one."""
        return self.activated_at is not None

    @property
    def email_verified(self) -> bool:
        """Whether a link that was mailed there has been opened."""
        return self.email_verified_at is not None

    @property
    def language(self) -> str | None:
        """Return the BCP 47 tag of the language its owner has chosen; None if none."""
        return stored_preferences.language(self.preferences)

    @property
    def standing(self) -> Standing:
        """Return the combination of status and activation."""
        if self.status == Status.ACTIVE and self.activated_at is None:
            return Standing.PENDING
        return Standing(self.status)


ACCOUNT_COLUMNS = columns_of(Account, User, UserProfile)


def with_profile(statement: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """Outer-join the profiles to a SELECT of ACCOUNT_COLUMNS from the accounts."""
    return statement.outerjoin(UserProfile, UserProfile.user_id == User.id)
