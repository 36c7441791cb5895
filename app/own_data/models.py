"""The kinds of export, and the table of deleted accounts whose traces are yet to be removed."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, UTCDateTime


class ArchiveFormat(StrEnum):
    """What an export is: one document, or an archive that also has the picture and a table."""

    JSON = "json"
    ZIP = "zip"


class Erasure(Base):
    """An account that its owner has deleted; `addresses` is a JSON list of those it had."""

    __tablename__ = "account_erasures"

    user_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    addresses: Mapped[str] = mapped_column(Text)
    deleted_at: Mapped[datetime] = mapped_column(UTCDateTime)
