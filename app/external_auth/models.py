"""The tables of external sign-in.

Sign-ins in progress are not here: they live minutes and are in Redis (`sign_in/service.py`).
"""

import json
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, Enum, ForeignKey, String, Text, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

from app.store.db import Base, Id, UTCDateTime


class ProviderKind(StrEnum):
    """The kinds of provider, by their names on the wire."""

    OIDC = "oidc"
    GENERIC_OAUTH2 = "generic_oauth2"
    GITHUB = "github"
    QQ = "qq"
    GOOGLE = "google"
    MICROSOFT = "microsoft"


class TokenAuth(StrEnum):
    """How the client secret is sent to the token endpoint; `auto` is what the kind needs."""

    AUTO = "auto"
    BASIC = "basic"
    POST = "post"


class Json(TypeDecorator[Any]):
    """A JSON value in a column of text; what somebody changed to no JSON stays a text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: object) -> str | None:
        """Return what is stored."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, _dialect: object) -> Any:
        """Return what was stored."""
        try:
            return None if value is None else json.loads(value)
        except ValueError:
            return value


def _words(words: type[StrEnum], length: int) -> Enum:
    return Enum(
        words,
        native_enum=False,
        length=length,
        values_callable=lambda members: [member.value for member in members],
    )


class Provider(Base):
    """One provider as an operator configured it.

    `client_secret` is encrypted and bound to `secret_row_name`; None for a public client. No
    `allowed_domains` means that all are allowed. Dedicated kinds store no URLs; if a row has some
    anyway, which no interface allows, they override the fixed ones (tests use this).
    """

    __tablename__ = "external_auth_providers"
    __table_args__ = (UniqueConstraint("provider_kind", "key"),)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    key: Mapped[str] = mapped_column(String(64))
    provider_kind: Mapped[ProviderKind] = mapped_column(_words(ProviderKind, 32))
    display_name: Mapped[str] = mapped_column(String(128))
    icon_url: Mapped[str | None] = mapped_column(String(2048))
    options: Mapped[dict[str, Any]] = mapped_column(Json)
    issuer_url: Mapped[str | None] = mapped_column(String(512))
    authorization_url: Mapped[str | None] = mapped_column(String(2048))
    token_url: Mapped[str | None] = mapped_column(String(2048))
    userinfo_url: Mapped[str | None] = mapped_column(String(2048))
    client_id: Mapped[str] = mapped_column(String(512))
    client_secret: Mapped[str | None] = mapped_column(Text)
    token_auth: Mapped[TokenAuth] = mapped_column(_words(TokenAuth, 8), server_default="auto")
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
    # Of no use here any more; 0.2 still reads them while its instances are replaced.
    groups_claim: Mapped[str | None] = mapped_column(String(128), deferred=True)
    avatar_url_claim: Mapped[str | None] = mapped_column(String(128), deferred=True)
    allowed_domains: Mapped[list[str] | None] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    updated_at: Mapped[datetime] = mapped_column(UTCDateTime)

    @property
    def name(self) -> str:
        """How operators name it without ambiguity."""
        return f"{self.provider_kind}/{self.key}"

    @property
    def secret_row_name(self) -> str:
        """The name that the encrypted client secret is bound to."""
        return f"external_auth_provider:{self.provider_kind}:{self.key}"

    @property
    def tenant(self) -> str | None:
        """The stored Microsoft tenant, None if there is none.

        Raises: ValueError if somebody changed the options to what has no such place.
        """
        match self.options:
            case {"microsoft": {"tenant": str(tenant)}}:
                return tenant
            case {"microsoft": None} | {"microsoft": {"tenant": None}}:
                return None
            case {**others} if "microsoft" not in others:
                return None
        raise ValueError("the stored options cannot be read: set the tenant again")

    def allows(self, address: str) -> bool:
        """Return whether an email address is in an allowed domain; subdomains do not match.

        None is, if somebody changed the domains to what is no list.
        """
        domains = self.allowed_domains
        if domains is None or domains == []:
            return True
        return isinstance(domains, list) and address.rpartition("@")[2].lower() in domains

    def is_trusted_with(self, address: str) -> bool:
        """Return whether an address that this provider calls verified counts as proven.

        A provider that neither joins nor makes accounts by addresses may say of them what it likes.
        """
        is_trusted = self.auto_link_verified_email_enabled or self.auto_provision_enabled
        return is_trusted and self.allows(address)


class Identity(Base):
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
    provider: Mapped[Provider] = relationship(lazy="raise")


class PendingIdentity(Base):
    """A verified identity without an account, until a mailbox or a password shows whose it is.

    The email address that the provider reported is deliberately not stored.
    `verification_token_digest` is None until a mail is requested, which is possible once;
    `browser_digest` is of the id of the browser that requested it; `is_short` is of the session;
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
    browser_digest: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime, index=True)
    consumed_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    is_short: Mapped[bool] = mapped_column(default=False, server_default=false())
