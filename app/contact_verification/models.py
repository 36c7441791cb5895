"""The tokens that prove an address."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, UTCDateTime


class LinkPurpose(StrEnum):
    """What a token may be used for."""

    REGISTER_ACTIVATION = "register_activation"
    CONTACT_CHANGE = "contact_change"
    PASSWORD_RESET = "password_reset"


class ContactToken(Base):
    """The only token of an account for a purpose; a newer one replaces it, redeeming deletes it.

    `address` is where it was sent, and so the address it proves. `browser_digest` is of the id that
    the browser has that asked for it; None if that does not matter.
    """

    __tablename__ = "contact_verification_tokens"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    purpose: Mapped[str] = mapped_column(String(32), primary_key=True)
    token_digest: Mapped[str] = mapped_column(String(64), unique=True)
    address: Mapped[str] = mapped_column(String(255))
    browser_digest: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime)
