"""Which migrations the database has had, and giving it those it lacks."""

from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from app.core.config import MIGRATIONS
from app.core.database import revisions as found
from app.core.database.revisions import Revisions
from app.core.runtime import Runtime


def revisions(rt: Runtime) -> Revisions:
    """Return where the database is."""
    with rt.reading() as connection:
        return found.revisions(connection)


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
