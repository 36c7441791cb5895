"""Which migrations the database has, and which this version needs."""

from dataclasses import dataclass
from functools import cache

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.orm import Session

from app.core.config import MIGRATIONS
from app.core.errors import DatabaseUnavailable


@dataclass(frozen=True)
class Revisions:
    """The revisions the database is at, and the newest ones that this version has.

    `is_newer`: another version has migrated it further, by migrations that this one does not have.
    """

    current: frozenset[str]
    newest: frozenset[str]
    is_newer: bool

    @property
    def is_older(self) -> bool:
        """Return whether the database lacks migrations of this version."""
        return self.current != self.newest and not self.is_newer


class TablesOutdated(DatabaseUnavailable):
    """The database lacks migrations of this version."""

    def __init__(self, found: Revisions) -> None:
        current, newest = (", ".join(sorted(names)) for names in (found.current, found.newest))
        at = f"is at {current}" if current else "has no tables"
        message = f"The database {at}, this version needs {newest}."
        super().__init__(message, remedy="Run `flask prepare`.")


class SchemaCheck:
    """Checks that the tables are those this process needs; once they are, never again."""

    def __init__(self) -> None:
        self._were_found = False

    def require_current(self, session: Session) -> None:
        """Make sure that the database is at the revision this version needs, or further.

        Raises: TablesOutdated.
        """
        if self._were_found:
            return
        found = revisions(session)
        if found.is_older:
            raise TablesOutdated(found)
        self._were_found = True


def revisions(session: Session) -> Revisions:
    """Return the revisions of the database and of this version."""
    every, newest = _of_this_version()
    current = frozenset(MigrationContext.configure(session.connection()).get_current_heads())
    return Revisions(current, newest, is_newer=not current <= every)


@cache
def _of_this_version() -> tuple[frozenset[str], frozenset[str]]:
    """Return all revisions, and the newest."""
    scripts = ScriptDirectory(str(MIGRATIONS))
    every = frozenset(script.revision for script in scripts.walk_revisions())
    return every, frozenset(scripts.get_heads())
