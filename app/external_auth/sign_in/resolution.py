"""The steps that decide which account a verified identity signs in to, and make a new one.

Invariant: an identity reaches an existing account only through a link, or through an email address
that both the provider and the account itself have verified; nothing less is enough.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.core.tokens import random_alphanumerics
from app.external_auth.drivers.driver import ExternalProfile
from app.external_auth.errors import PolicyDenied, UsernamesTaken
from app.external_auth.models import ProviderKind
from app.external_auth.sign_in import linking
from app.external_auth.sign_in.linking import Arrival, ResolvedSignIn
from app.settings import keys
from app.setup import service as setup
from app.users import identifiers
from app.users import service as users
from app.users.errors import EmailInvalid, PendingActivation, UsernameExists
from app.users.models import Account, User

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


def resolve(
    rt: Runtime, session: Session, arrival: Arrival, settings: RegistrationSettings
) -> ResolvedSignIn | None:
    """Return who signs in; None if a mailbox or a password has to show whose identity it is.

    The caller holds the identity's lock. Raises: AccountDisabled, PolicyDenied, LinkConflict,
    SystemNotInitialized, EmailExists, UsernamesTaken, IdentifierExists.
    """
    provider, profile = arrival.provider, arrival.profile
    if account := linking.sign_in_linked(rt, session, profile):
        return ResolvedSignIn(account, arrival)
    if profile.email is None:
        # GitHub reports only addresses that it has verified: none is as good as an unverified one.
        if provider.provider_kind is ProviderKind.GITHUB and provider.require_email_verified:
            raise PolicyDenied
        return None
    if provider.require_email_verified and not profile.email_verified:
        raise PolicyDenied
    address = _account_address(profile.email)
    if not provider.allows(address or profile.email):
        raise PolicyDenied
    if address is None:
        return None
    if resolved := _link_by_address(rt, session, arrival, address):
        return resolved
    return _provision(rt, session, arrival, address, settings)


def _account_address(email: str) -> str | None:
    """Return an email address as accounts store it; None if no account can have it."""
    try:
        return identifiers.email(email)
    except EmailInvalid:
        return None


def _link_by_address(
    rt: Runtime, session: Session, arrival: Arrival, address: str
) -> ResolvedSignIn | None:
    """Link the account that has this verified address if auto-linking applies, else None."""
    profile = arrival.profile
    if not arrival.provider.auto_link_verified_email_enabled or not profile.email_verified:
        return None
    account = linking.lock_account_by_email(session, address)
    if account is None:
        return None
    try:
        linking.require_verified_email(account)
    except PendingActivation:
        return None
    return linking.link(rt, session, account, arrival, email_snapshot=profile.email)


def _provision(
    rt: Runtime, session: Session, arrival: Arrival, address: str, settings: RegistrationSettings
) -> ResolvedSignIn | None:
    """Create and link an account if that is enabled and permitted, else return None."""
    provider, profile = arrival.provider, arrival.profile
    must_be_verified = provider.require_email_verified or provider.auto_link_verified_email_enabled
    if not provider.auto_provision_enabled or not settings.may_register:
        return None
    if must_be_verified and not profile.email_verified:
        return None
    # Locked, so that of two identities racing for it the second finds it taken.
    users.lock_address(session, address)
    if linking.find_account_by_email(session, address):
        return None
    account = create_account(
        rt, session, profile, address, settings, is_verified=profile.email_verified
    )
    return linking.link(
        rt, session, account, arrival, email_snapshot=profile.email, is_new_account=True
    )


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
        new = User(
            username=username,
            email=address,
            password_hash=None,
            activated_at=now,
            email_verified_at=now if is_verified else None,
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
