"""The account of an identity that has none: its address, and a username that is free."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.crypto.tokens import random_alphanumerics
from app.external_auth.drivers.driver import ExternalProfile
from app.external_auth.errors import UsernamesTaken
from app.settings import keys
from app.setup import service as setup
from app.users import identifiers
from app.users import service as users
from app.users.errors import EmailInvalid, UsernameExists
from app.users.models import Account, User

# Of usernames, which are made of a stem and, if that is taken, a suffix.
MIN_LENGTH, MAX_LENGTH = 4, 16
MAX_STEM_LENGTH, SUFFIX_LENGTH = 9, 6
TRIES = 5
FALLBACK = "oidc"


@dataclass(frozen=True)
class RegistrationSettings:
    """The settings that govern account creation, read before the transaction."""

    may_register: bool
    storage_quota: int

    @classmethod
    def of(cls, rt: Runtime) -> "RegistrationSettings":
        """Return the current settings."""
        return cls(
            rt.settings.get(keys.ALLOW_USER_REGISTRATION),
            rt.settings.get(keys.DEFAULT_STORAGE_QUOTA),
        )


def account_address(email: str) -> str | None:
    """Return an email address as accounts store it; None if no account can have it."""
    try:
        return identifiers.email(email)
    except EmailInvalid:
        return None


def create_account(
    rt: Runtime,
    session: Session,
    profile: ExternalProfile,
    address: str,
    settings: RegistrationSettings,
    *,
    is_verified: bool,
) -> Account:
    """Insert an activated account without a usable password.

    Raises: SystemNotInitialized, EmailExists, UsernamesTaken, IdentifierExists.
    """
    group_id = setup.get_group_id_for_new_account(session)
    now = rt.clock.now()
    for username in usernames(profile.subject, profile.preferred_username, address):
        if users.is_reserved(rt, username):
            continue
        new = User(
            username=username,
            email=address,
            password_hash=None,
            activated_at=now,
            email_verified_at=now if is_verified else None,
            proven_at=now if is_verified else None,
            storage_quota=settings.storage_quota,
            policy_group_id=group_id,
        )
        try:
            # A savepoint, since a failed insert aborts the whole transaction in PostgreSQL.
            with session.begin_nested():
                return users.create(session, new, now)
        except UsernameExists:
            continue
    raise UsernamesTaken


def usernames(subject: str, preferred: str | None, address: str) -> Iterator[str]:
    """Yield usernames to try: the one derived from the profile, then some with random suffixes."""
    name = _name(subject, preferred, address)
    yield name
    stem = name[:MAX_STEM_LENGTH].strip("-")
    stem = stem if len(stem) >= MIN_LENGTH else FALLBACK
    for _ in range(TRIES - 1):
        yield f"{stem}-{random_alphanumerics(SUFFIX_LENGTH)}"


def _name(subject: str, preferred: str | None, address: str) -> str:
    sources = (_cleaned(preferred or ""), _cleaned(address.partition("@")[0]))
    fallback = FALLBACK + hashlib.sha256(subject.encode()).hexdigest()[:8]
    name = next((source for source in sources if len(source) >= MIN_LENGTH), fallback)
    return name[:MAX_LENGTH].strip("-").ljust(MIN_LENGTH, "0")


def _cleaned(source: str) -> str:
    # Before lower(), which turns some other characters, such as the Kelvin sign, into ASCII.
    ascii_only = "".join(c for c in source if c.isascii())
    return re.sub(r"[^a-z0-9_-]", "", re.sub(r"[. ]", "-", ascii_only.lower())).strip("-")
