"""The tables of external sign-in (spec 03 §10; decisions A27, E19).

Login flows are not here: they live minutes and are in Redis (`flows.py`).
"""

import json
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db import Base, Id, UTCDateTime, columns_of
from app.external_auth.drivers.interface import ProviderKind


class ExternalAuthProvider(Base):
    """One provider as an operator configured it (spec 03 §9.1).

    `client_secret` is encrypted and bound to `external_auth_provider:<kind>:<key>`; None for a
    public client. `options` and `allowed_domains` are JSON; no domains means that all are allowed.
    Kinds with fixed endpoints store none; if a row has some anyway, which no interface allows, they
    override the fixed ones (spec 03 §7.3, test hook).
    """

    __tablename__ = "external_auth_providers"
    __table_args__ = (UniqueConstraint("provider_kind", "key"),)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    key: Mapped[str] = mapped_column(String(64))
    provider_kind: Mapped[str] = mapped_column(String(32))
    display_name: Mapped[str] = mapped_column(String(128))
    icon_url: Mapped[str | None] = mapped_column(String(2048))
    options: Mapped[str] = mapped_column(Text)
    issuer_url: Mapped[str | None] = mapped_column(String(512))
    authorization_url: Mapped[str | None] = mapped_column(String(2048))
    token_url: Mapped[str | None] = mapped_column(String(2048))
    userinfo_url: Mapped[str | None] = mapped_column(String(2048))
    client_id: Mapped[str] = mapped_column(String(512))
    client_secret: Mapped[str | None] = mapped_column(Text)
    scopes: Mapped[str] = mapped_column(Text)
    enabled: Mapped[bool]
    auto_provision_enabled: Mapped[bool]
    auto_link_verified_email_enabled: Mapped[bool]
    require_email_verified: Mapped[bool]
    subject_claim: Mapped[str | None] = mapped_column(String(128))
    username_claim: Mapped[str | None] = mapped_column(String(128))
    display_name_claim: Mapped[str | None] = mapped_column(String(128))
    email_claim: Mapped[str | None] = mapped_column(String(128))
    email_verified_claim: Mapped[str | None] = mapped_column(String(128))
    groups_claim: Mapped[str | None] = mapped_column(String(128))
    avatar_url_claim: Mapped[str | None] = mapped_column(String(128))
    allowed_domains: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)


class ExternalAuthIdentity(Base):
    """A link between an external identity and the account it signs in to.

    An identity is the pair (`identity_namespace`, `subject`), whichever provider asserts it. The
    snapshots are the last values that the provider reported.
    """

    __tablename__ = "external_auth_identities"
    __table_args__ = (
        UniqueConstraint("identity_namespace", "subject"),
        UniqueConstraint("provider_id", "subject"),
        UniqueConstraint("user_id", "provider_id"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"))
    provider_id: Mapped[int] = mapped_column(
        Id, ForeignKey("external_auth_providers.id", ondelete="CASCADE")
    )
    identity_namespace: Mapped[str] = mapped_column(String(512))
    subject: Mapped[str] = mapped_column(String(255))
    email_snapshot: Mapped[str | None] = mapped_column(String(255))
    display_name_snapshot: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)
    last_login_at: Mapped[datetime | None] = mapped_column(UTCDateTime)


class ExternalAuthPending(Base):
    """A verified identity without an account, until a mailbox or a password shows whose it is.

    The email address that the provider reported is deliberately not stored.
    `verification_token_digest` is None until a mail is requested, which is possible once;
    `owner_session_version` is that of the address's account at that moment, or a new account's. It
    stays None if a release older than migration 0007, still running in an upgrade, sent the mail.
    """

    __tablename__ = "external_auth_pending"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    provider_id: Mapped[int] = mapped_column(
        Id, ForeignKey("external_auth_providers.id", ondelete="CASCADE"), index=True
    )
    identity_namespace: Mapped[str] = mapped_column(String(512))
    subject: Mapped[str] = mapped_column(String(255))
    display_name_snapshot: Mapped[str | None] = mapped_column(String(255))
    preferred_username_snapshot: Mapped[str | None] = mapped_column(String(255))
    return_path: Mapped[str] = mapped_column(String(2048))
    flow_token_digest: Mapped[str] = mapped_column(String(64), unique=True)
    target_email: Mapped[str | None] = mapped_column(String(255))
    verification_token_digest: Mapped[str | None] = mapped_column(String(64), unique=True)
    email_requested_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    owner_session_version: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime, index=True)
    consumed_at: Mapped[datetime | None] = mapped_column(UTCDateTime)


class Provider(NamedTuple):
    """A read-only copy of a provider; PROVIDER_COLUMNS lists its columns in field order."""

    id: int
    key: str
    provider_kind: ProviderKind
    display_name: str
    icon_url: str | None
    options: str
    issuer_url: str | None
    authorization_url: str | None
    token_url: str | None
    userinfo_url: str | None
    client_id: str
    client_secret: str | None
    scopes: str
    enabled: bool
    auto_provision_enabled: bool
    auto_link_verified_email_enabled: bool
    require_email_verified: bool
    subject_claim: str | None
    username_claim: str | None
    display_name_claim: str | None
    email_claim: str | None
    email_verified_claim: str | None
    groups_claim: str | None
    avatar_url_claim: str | None
    allowed_domains: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def tenant(self) -> str | None:
        """Return the stored Microsoft tenant, or None."""
        microsoft = self.stored_options.get("microsoft")
        tenant = microsoft.get("tenant") if isinstance(microsoft, dict) else None
        return tenant if isinstance(tenant, str) else None

    @property
    def stored_options(self) -> dict[str, Any]:
        """Return the options; anything but a JSON object counts as empty."""
        try:
            options = json.loads(self.options)
        except ValueError:
            return {}
        return options if isinstance(options, dict) else {}

    @property
    def domains(self) -> tuple[str, ...]:
        """Return the allowed email domains; empty if every domain is allowed."""
        return tuple(json.loads(self.allowed_domains)) if self.allowed_domains else ()

    def allows(self, address: str) -> bool:
        """Return whether an email address is in an allowed domain; subdomains do not match."""
        return not self.domains or address.rpartition("@")[2].lower() in self.domains


PROVIDER_COLUMNS = columns_of(Provider, ExternalAuthProvider)


class Identity(NamedTuple):
    """The part of a link that a sign-in needs."""

    id: int
    user_id: int


class Link(NamedTuple):
    """A link as its owner sees it."""

    id: int
    provider_id: int
    provider_key: str
    provider_kind: str
    provider_display_name: str
    provider_icon_url: str | None
    issuer: str
    subject: str
    email_snapshot: str | None
    display_name_snapshot: str | None
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None


class PendingIdentity(NamedTuple):
    """A read-only copy of a pending identity."""

    id: int
    provider_id: int
    identity_namespace: str
    subject: str
    display_name_snapshot: str | None
    preferred_username_snapshot: str | None
    return_path: str
    target_email: str | None
    email_requested_at: datetime | None
    owner_session_version: int | None
    expires_at: datetime
    consumed_at: datetime | None
