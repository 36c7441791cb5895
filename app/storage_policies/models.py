"""Tables of policies, groups and the policies in a group."""

import json
from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.store.db import Base, Id, UTCDateTime

DEFAULT_CHUNK_BYTES = 5 * 1024 * 1024
LOCAL_CONNECTOR = "local"  # files on this machine
MAX_NAME_LENGTH = 128  # of policies and groups
MAX_DESCRIPTION_LENGTH = 512


class StoragePolicy(Base):
    """A place for files. Sizes are in bytes; 0 means no limit, or for chunks, no chunking."""

    __tablename__ = "storage_policies"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    connector_id: Mapped[str] = mapped_column(String(64))
    options: Mapped[str] = mapped_column(Text)
    max_file_size: Mapped[int] = mapped_column(BigInteger)
    allowed_types: Mapped[str] = mapped_column(Text)
    is_default: Mapped[bool]
    chunk_size: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)

    @property
    def types(self) -> list[str]:
        """The media types it takes; empty for any."""
        types: list[str] = json.loads(self.allowed_types)
        return types


class StoragePolicyGroup(Base):
    """A list of policies to which accounts and teams are assigned."""

    __tablename__ = "storage_policy_groups"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    description: Mapped[str] = mapped_column(String(MAX_DESCRIPTION_LENGTH))
    is_enabled: Mapped[bool]
    is_default: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)
    items: Mapped[list["StoragePolicyGroupItem"]] = relationship(
        order_by="StoragePolicyGroupItem.priority", lazy="selectin", passive_deletes="all"
    )


class StoragePolicyGroupItem(Base):
    """One policy of a group; the lowest priority number is tried first."""

    __tablename__ = "storage_policy_group_items"
    __table_args__ = (
        UniqueConstraint("group_id", "policy_id"),
        UniqueConstraint("group_id", "priority"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    group_id: Mapped[int] = mapped_column(
        ForeignKey("storage_policy_groups.id", ondelete="CASCADE")
    )
    policy_id: Mapped[int] = mapped_column(
        ForeignKey("storage_policies.id", ondelete="CASCADE"), index=True
    )
    priority: Mapped[int] = mapped_column(Integer)
    min_file_size: Mapped[int] = mapped_column(BigInteger)
    max_file_size: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    policy: Mapped[StoragePolicy] = relationship(lazy="joined", innerjoin=True)
