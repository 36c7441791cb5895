"""The tables of passkeys."""

import json
from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, Id, UTCDateTime

MAX_NAME_LENGTH = 128
# WebAuthn §7.1: a credential id has at most 1023 bytes.
MAX_CREDENTIAL_ID_BYTES = 1023
HANDLE_BYTES = 16


class PasskeyHandle(Base):
    """The WebAuthn user handle of an account, kept until its last passkey is removed.

    `handle` is random, in base64url; it reveals nothing about the account (WebAuthn §14.6.1).
    """

    __tablename__ = "passkey_handles"

    user_id: Mapped[int] = mapped_column(
        Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    handle: Mapped[str] = mapped_column(String(22), unique=True)


class Passkey(Base):
    """One WebAuthn credential.

    `credential_id` is base64url, `public_key` a COSE key, `transports` a JSON list, or None if the
    client reported none.
    """

    __tablename__ = "passkeys"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"), index=True)
    credential_id: Mapped[str] = mapped_column(String(1364), unique=True)
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    name: Mapped[str] = mapped_column(String(MAX_NAME_LENGTH))
    transports: Mapped[str | None] = mapped_column(Text)
    sign_count: Mapped[int] = mapped_column(BigInteger)
    backup_eligible: Mapped[bool]
    backed_up: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UTCDateTime)

    @property
    def transport_names(self) -> list[str] | None:
        """The transports as a list."""
        return None if self.transports is None else list(json.loads(self.transports))
