"""The single query behind the set-up state."""

from sqlalchemy import exists, select

from app.core.database.database import Database, Reader
from app.core.database.prepared import Prepared, constant
from app.core.database.read_only import ServerReadOnly
from app.setup.state import Facts
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup
from app.storage_policies.queries import usable_default_group
from app.users.models import Role, User

_IS_ADMIN = User.role == constant(Role.ADMIN)
_FACTS = select(
    exists(select(User.id)),
    exists(select(User.id).where(_IS_ADMIN)),
    exists(select(StoragePolicy.id).where(StoragePolicy.is_default)),
    exists(select(StoragePolicyGroup.id).where(usable_default_group())),
    exists(select(User.id).where(_IS_ADMIN, User.policy_group_id.is_(None))),
)


_FACTS_NOW = Prepared(_FACTS, ())


def facts_now(database: Database) -> Facts:
    """Return the facts in one query, without a connection of the caller's."""
    return Facts(*map(bool, database.rows(_FACTS_NOW)[0]))


def facts(reader: Reader) -> Facts:
    """Return the facts in one query."""
    return Facts(*map(bool, reader.execute(_FACTS).one()))


def facts_and_read_only(reader: Reader) -> tuple[Facts, bool]:
    """Return the facts, and whether the server is read-only, in one query."""
    *found, is_read_only = map(bool, reader.execute(_FACTS.add_columns(ServerReadOnly())).one())
    return Facts(*found), is_read_only
