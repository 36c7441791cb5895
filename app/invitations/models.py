"""The table of invitations."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, Id, UTCDateTime


class InvitationStatus(StrEnum):
    """The state of an invitation; all but PENDING are final."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Invitation(Base):
    """One invitation; an address has at most one pending invitation.

    `invited_by` is None if it was created on the command line or the inviter's account is gone.
    A row past `expires_at` may still be PENDING: it is marked EXPIRED when next used or closed.
    """

    __tablename__ = "invitations"
    __table_args__ = (
        Index(
            "uq_invitations_email_pending",
            "email",
            unique=True,
            sqlite_where=text("status = 'pending'"),
            postgresql_where=text("status = 'pending'"),
        ),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    email: Mapped[str] = mapped_column(String(255))
    token_digest: Mapped[str] = mapped_column(String(64), unique=True)
    status: Mapped[str] = mapped_column(String(16))
    invited_by: Mapped[int | None] = mapped_column(
        ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
    accepted_user_id: Mapped[int | None] = mapped_column(
        ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)
    accepted_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UTCDateTime)

    def status_at(self, now: datetime) -> InvitationStatus:
        """Return the effective status: EXPIRED for a pending invitation past `expires_at`."""
        is_overdue = self.status == InvitationStatus.PENDING and self.expires_at <= now
        return InvitationStatus.EXPIRED if is_overdue else InvitationStatus(self.status)

    def close(self, status: InvitationStatus, now: datetime) -> None:
        """Give a pending invitation its final status; its row is locked."""
        self.status, self.updated_at = status, now
