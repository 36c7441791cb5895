"""Login sessions and the refresh tokens they have used up."""

from datetime import datetime

from sqlalchemy import ForeignKey, String, Uuid
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base, UTCDateTime


class LoginSession(Base):
    """One signed-in device.

    `refresh_digest` is the SHA-256 of its one live refresh token. A session that ended keeps its
    row as a tombstone until its tokens would have expired, so that they are still recognised.
    `is_limited` sessions may only change the password.
    """

    __tablename__ = "login_sessions"

    id: Mapped[str] = mapped_column(Uuid(as_uuid=False), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    refresh_digest: Mapped[str] = mapped_column(String(64), unique=True)
    is_limited: Mapped[bool]
    ip_address: Mapped[str | None] = mapped_column(String(45))
    user_agent: Mapped[str | None] = mapped_column(String(512))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    last_seen_at: Mapped[datetime] = mapped_column(UTCDateTime)
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UTCDateTime)


class SpentRefreshToken(Base):
    """A refresh token that was exchanged; kept until it would have expired (decision A6)."""

    __tablename__ = "spent_refresh_tokens"

    token_digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    session_id: Mapped[str] = mapped_column(
        ForeignKey("login_sessions.id", ondelete="CASCADE"), index=True
    )
    consumed_at: Mapped[datetime] = mapped_column(UTCDateTime)
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime, index=True)
