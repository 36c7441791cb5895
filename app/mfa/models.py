"""The tables of second factors."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.db import Base, Id, UTCDateTime

MAX_FACTOR_NAME_LENGTH = 128


class MfaMethod(StrEnum):
    """How a second factor is proven; only TOTP has a row in `mfa_factors`."""

    TOTP = "totp"
    RECOVERY_CODE = "recovery_code"
    EMAIL_CODE = "email_code"


class CodePurpose(StrEnum):
    """What a TOTP code is entered for, which it works for once; names the column of its step."""

    LOGIN = "last_login_step"
    MANAGEMENT = "last_management_step"


class MfaFactor(Base):
    """One enabled factor; an account has at most one of each method.

    `secret` is sealed for the row `mfa_factor:<user_id>`. The two steps are the newest accepted
    TOTP time steps, one per purpose; None until one is accepted.
    """

    __tablename__ = "mfa_factors"
    __table_args__ = (UniqueConstraint("user_id", "method"),)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"))
    method: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(MAX_FACTOR_NAME_LENGTH))
    secret: Mapped[str] = mapped_column(Text)
    last_login_step: Mapped[int | None] = mapped_column(BigInteger)
    last_management_step: Mapped[int | None] = mapped_column(BigInteger)
    enabled_at: Mapped[datetime] = mapped_column(UTCDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UTCDateTime)


class MfaRecoveryCode(Base):
    """One recovery code. `code_hash` is `<key id>:<HMAC-SHA256>` over account and code."""

    __tablename__ = "mfa_recovery_codes"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"), index=True)
    code_hash: Mapped[str] = mapped_column(String(128))
    used_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
