"""The set-up state, and the one query that it is derived from."""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import exists, literal_column, select
from sqlalchemy.orm import Session

from app.setup.errors import AdministratorMissing
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup
from app.storage_policies.queries import usable_default_group
from app.users.models import User


class SetupState(StrEnum):
    """How far the installation is set up."""

    NEEDS_ADMIN = "needs_admin"
    NEEDS_STORAGE = "needs_storage"
    READY = "ready"


@dataclass(frozen=True)
class Facts:
    """What the set-up state is derived from."""

    has_users: bool
    has_admin: bool
    has_default_policy: bool
    has_usable_default_group: bool
    has_unassigned_admin: bool


def state_of(facts: Facts) -> SetupState:
    """Return the set-up state.

    Raises: AdministratorMissing, so that the public set-up stays closed.
    """
    if not facts.has_users:
        return SetupState.NEEDS_ADMIN
    if not facts.has_admin:
        raise AdministratorMissing
    is_routed = facts.has_default_policy and facts.has_usable_default_group
    if not is_routed or facts.has_unassigned_admin:
        return SetupState.NEEDS_STORAGE
    return SetupState.READY


# Written out, so that SQLite can use the partial index.
_IS_ADMIN = User.role == literal_column("'admin'")
_FACTS = select(
    exists(select(User.id)),
    exists(select(User.id).where(_IS_ADMIN)),
    exists(select(StoragePolicy.id).where(StoragePolicy.is_default)),
    exists(select(StoragePolicyGroup.id).where(usable_default_group())),
    exists(select(User.id).where(_IS_ADMIN, User.policy_group_id.is_(None))),
)


def facts(session: Session) -> Facts:
    """Return the facts in one query."""
    return Facts(*map(bool, session.execute(_FACTS).one()))
