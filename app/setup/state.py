"""How the set-up state is derived (spec, States; 01 §3)."""

from dataclasses import dataclass
from enum import StrEnum

from app.setup.errors import AdministratorMissing


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
