"""The table of runtime settings."""

from datetime import datetime

from sqlalchemy import BigInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, Id, UTCDateTime


class SystemConfig(Base):
    """One setting that is set, or was; a key without a row has its default.

    A `value` of None is a setting that has returned to its default. `updated_by` is the account
    that changed it; None for the command line and for the service itself.
    """

    __tablename__ = "system_config"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    key: Mapped[str] = mapped_column(String(128), unique=True)
    value: Mapped[str | None] = mapped_column(Text)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_by: Mapped[int | None] = mapped_column(BigInteger)
