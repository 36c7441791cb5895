"""The single query behind the set-up state."""

from sqlalchemy import exists, literal_column, select

from app.core.database.database import Reader
from app.core.database.read_only import ServerReadOnly
from app.setup.state import Facts
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup
from app.storage_policies.queries import usable_default_group
from app.users.models import User

# Written out, so that SQLite can use the partial index.
_IS_ADMIN = User.role == literal_column("'admin'")
_FACTS = select(
    exists(select(User.id)),
    exists(select(User.id).where(_IS_ADMIN)),
    exists(select(StoragePolicy.id).where(StoragePolicy.is_default)),
    exists(select(StoragePolicyGroup.id).where(usable_default_group())),
    exists(select(User.id).where(_IS_ADMIN, User.policy_group_id.is_(None))),
)


def facts(reader: Reader) -> Facts:
    """Return the facts in one query."""
    return Facts(*map(bool, reader.execute(_FACTS).one()))


def facts_and_read_only(reader: Reader) -> tuple[Facts, bool]:
    """Return the facts, and whether the server is read-only, in one query."""
    *found, is_read_only = map(bool, reader.execute(_FACTS.add_columns(ServerReadOnly())).one())
    return Facts(*found), is_read_only
