"""Reads the database's migration revisions, and applies the missing migrations."""

from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from app.core.config import MIGRATIONS
from app.core.database import revisions as found
from app.core.database.revisions import Revisions
from app.core.runtime import Runtime


def revisions(rt: Runtime) -> Revisions:
    """Return the revisions of the database and of this version."""
    with rt.reading() as connection:
        return found.revisions(connection)


def upgrade(rt: Runtime) -> bool:
    """Migrate to this version; False, with nothing changed, if the database is newer than that.

    That is no error: the old version must start beside the new one, and again for a rollback.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError:
        # Checked only now: another process may have migrated while this one waited for the lock.
        if not revisions(rt).is_newer:
            raise
        return False
    return True
