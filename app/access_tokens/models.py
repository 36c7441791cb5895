"""The table of access tokens."""

from datetime import datetime

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.access import Scope
from app.store.db import Base, Id, UTCDateTime

MAX_NAME_LENGTH = 64
KNOWN_SCOPES = frozenset(Scope)


class AccessToken(Base):
    """A token that the owner of an account has given to a program.

    `digest` is its SHA-256, `prefix` are its first characters, to be shown. `stored_scopes` are
    separated by spaces. `expires_at` is None if it never expires. `last_used_*` may be ten minutes
    old.
    """

    __tablename__ = "access_tokens"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(MAX_NAME_LENGTH))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    prefix: Mapped[str] = mapped_column(String(8))
    stored_scopes: Mapped[str] = mapped_column("scopes", String(255))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    last_used_ip: Mapped[str | None] = mapped_column(String(45))

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """What it opens."""
        return read_scopes(self.stored_scopes)


def read_scopes(stored: str) -> tuple[Scope, ...]:
    """Return stored scopes; those of a later version, which may have run before, open nothing."""
    return tuple(Scope(name) for name in stored.split() if name in KNOWN_SCOPES)
