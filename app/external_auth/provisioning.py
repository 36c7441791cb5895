"""The step that creates an account for an external identity (spec 03 §6.1; decisions E26, E29)."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.external_auth import usernames
from app.external_auth.drivers.interface import ExternalProfile
from app.external_auth.errors import UsernamesTaken
from app.settings import keys
from app.setup import service as setup
from app.users import service as users
from app.users.errors import UsernameExists
from app.users.models import Account


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
    for username in usernames.candidates(profile.subject, profile.preferred_username, address):
        new = users.NewUser(
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
