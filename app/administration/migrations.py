"""Which migrations the database has had, and giving it those it lacks."""

from dataclasses import dataclass

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from app.core.config import MIGRATIONS
from app.core.runtime import Runtime


@dataclass(frozen=True)
class Revisions:
    """Where the database is, and where this version takes it.

    `is_newer`: another version has taken it further, by migrations that this one does not have.
    """

    current: frozenset[str]
    newest: frozenset[str]
    is_newer: bool


def revisions(rt: Runtime) -> Revisions:
    """Return where the database is."""
    scripts = ScriptDirectory(str(MIGRATIONS))
    known = {script.revision for script in scripts.walk_revisions()}
    with rt.reading() as connection:
        current = frozenset(MigrationContext.configure(connection).get_current_heads())
    return Revisions(current, frozenset(scripts.get_heads()), is_newer=not current <= known)


def upgrade(rt: Runtime) -> bool:
    """Bring the tables up to date; False, and nothing is changed, where they are newer than that.

    An instance of the old version must start beside the new one, and after it to go back.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError:
        # Asked only now: while this one waited for its turn another may have migrated.
        if not revisions(rt).is_newer:
            raise
        return False
    return True
