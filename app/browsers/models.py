"""The table of known browsers."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, Id, UTCDateTime

MAX_NAME_LENGTH = 64


class Browser(Base):
    """A browser that has signed in to an account.

    `digest` is of its cookie `service_device`, which is the same for all accounts of the browser.
    While `remembered_until` lies ahead, it is not asked for the second step; `remembered_at` is
    when that was granted. `seen_since_reset` is false until it signs in again after a reset of the
    password.
    """

    __tablename__ = "browsers"
    __table_args__ = (UniqueConstraint("user_id", "digest"),)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"))
    digest: Mapped[str] = mapped_column(String(64), index=True)
    name: Mapped[str] = mapped_column(String(MAX_NAME_LENGTH))
    ip_address: Mapped[str | None] = mapped_column(String(45))
    first_seen_at: Mapped[datetime] = mapped_column(UTCDateTime)
    last_seen_at: Mapped[datetime] = mapped_column(UTCDateTime, index=True)
    remembered_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    remembered_until: Mapped[datetime | None] = mapped_column(UTCDateTime)
    seen_since_reset: Mapped[bool] = mapped_column(default=True)


class Grant(NamedTuple):
    """When a browser was remembered, and until when; None if it is not."""

    remembered_at: datetime | None
    remembered_until: datetime | None


class Others(NamedTuple):
    """What is known about an account's browsers, and about a value that a browser presents.

    `is_issued`: some account has a browser with it.
    """

    number: int
    seen_since_reset: int
    is_issued: bool
