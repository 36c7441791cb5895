"""Login sessions."""

from datetime import datetime

from sqlalchemy import ForeignKey, String, Uuid, false, func
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.store.db import Base, UTCDateTime
from app.users.models import User


class LoginSession(Base):
    """One signed-in device.

    Three columns are SHA-256 digests (see `refresh_token.py`): `refresh_selector` of the part that
    all its refresh tokens share, `refresh_digest` of the live token, `previous_digest` of its
    predecessor. `last_seen_at` is when the live token was issued. A session that ended keeps its
    row as a tombstone until its tokens would have expired, so that they are still recognised.
    `is_limited` sessions may only change the password. `confirmed_at` is when the owner last proved
    to be the owner: at the sign-in, or by a confirmation since; a sign-in without its second step
    does not count. `is_short` sessions end with the browser's window, or soon without use.
    """

    __tablename__ = "login_sessions"

    id: Mapped[str] = mapped_column(Uuid(as_uuid=False), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    refresh_selector: Mapped[str] = mapped_column(String(64), unique=True)
    refresh_digest: Mapped[str] = mapped_column(String(64))
    previous_digest: Mapped[str | None] = mapped_column(String(64))
    is_limited: Mapped[bool]
    ip_address: Mapped[str | None] = mapped_column(String(45))
    user_agent: Mapped[str | None] = mapped_column(String(512))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    last_seen_at: Mapped[datetime] = mapped_column(UTCDateTime)
    # The default is for instances of the version before, while an upgrade is under way.
    confirmed_at: Mapped[datetime] = mapped_column(UTCDateTime, server_default=func.now())
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    is_short: Mapped[bool] = mapped_column(default=False, server_default=false())
    user: Mapped[User] = relationship(lazy="joined", innerjoin=True)
