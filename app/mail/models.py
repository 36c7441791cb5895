"""The outbox table."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import Index, Integer, String, Text, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, UTCDateTime

# Only notices are looked up by recipient, see `queries.find_notice`.
IS_NOTICE = text("template = 'security_notice'")
# They are counted for each account, see `queries.count_sign_ins`.
IS_NEW_SIGN_IN = text("template = 'new_sign_in'")


class MailStatus(StrEnum):
    """The state of a mail; the last two are final."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


class OutboxMail(Base):
    """One mail to one address.

    `payload` is the encrypted JSON of the template's stored values, which may include a token; it
    is None once the mail is sent or given up. `due_at` is when to (re)try; while SENDING, when the
    lease expires. `lease` identifies the attempt in progress. `attempts` counts only attempts that
    use up a try: not refusals that are the server's fault, failures before it had the mail, a
    missing key, nor, while the mail `is_hurried`, those that an operator wants. `topic` is what a
    notice is about, if it may be gathered or counted with others.
    """

    __tablename__ = "mail_outbox"
    __table_args__ = (
        Index("ix_mail_outbox_status_due_at", "status", "due_at"),
        Index(
            "ix_mail_outbox_notices",
            "recipient",
            "created_at",
            sqlite_where=IS_NOTICE,
            postgresql_where=IS_NOTICE,
        ),
        Index(
            "ix_mail_outbox_sign_ins",
            "topic",
            "created_at",
            sqlite_where=IS_NEW_SIGN_IN,
            postgresql_where=IS_NEW_SIGN_IN,
        ),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    template: Mapped[str] = mapped_column(String(64))
    recipient: Mapped[str] = mapped_column(String(255))
    payload: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    attempts: Mapped[int] = mapped_column(Integer)
    lease: Mapped[str | None] = mapped_column(String(36))
    is_hurried: Mapped[bool] = mapped_column(default=False, server_default=false())
    topic: Mapped[str | None] = mapped_column(String(160))
    last_error: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    due_at: Mapped[datetime] = mapped_column(UTCDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
