"""Makes an instance and brings its database up to date; how far it is set up."""

import logging
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from app.core import folders
from app.core.access import Operator
from app.core.config import MIGRATIONS
from app.core.runtime import Runtime
from app.external_auth.models import Provider
from app.installation.errors import KeysMissing
from app.mail.models import OutboxMail
from app.settings import keys
from app.settings.models import SystemConfig
from app.setup import service as setup
from app.setup.errors import AdministratorMissing
from app.setup.queries import SetupState
from app.storage_policies import service as storage
from app.store.db import Base
from app.store.revisions import revisions
from app.user_admin.errors import NoAdministrator
from app.users.models import User

log = logging.getLogger(__name__)

SENSITIVE = [name for name, key in keys.ALL.items() if key.is_sensitive]

# Rows that are usable only with the keys they were created with: accounts that sign in, and
# encrypted values.
USED_WITH_KEYS: tuple[tuple[type[Base], sa.ColumnElement[bool]], ...] = (
    (User, sa.true()),
    (SystemConfig, SystemConfig.key.in_(SENSITIVE) & (SystemConfig.value != "")),
    (Provider, Provider.client_secret.is_not(None)),
    (OutboxMail, OutboxMail.payload.is_not(None)),
)


def create_if_missing(rt: Runtime, *, new_keys: bool = False) -> None:
    """Create the folder and the key file of a new instance; leave existing ones as they are.

    `new_keys`: the keys that the database was used with are lost for good.
    Raises: ConfigError; KeysMissing, without creating a key file: a new one would hide that the
    right one is missing, and whatever it encrypts would be unreadable once that is restored.
    """
    folders.make_instance(rt.config.instance)
    file = rt.database.file
    missing = file.path if file is not None and file.is_missing else None
    if rt.keyring.is_file and not rt.keyring.path.exists():
        if not new_keys and missing is None and _is_used(rt):
            raise KeysMissing
        rt.keyring.create()
    elif rt.keyring.is_file and missing is not None:
        log.warning("creating a database, %s, for keys that are not new: was one lost?", missing)
    rt.keyring.require()


def migrate(rt: Runtime) -> bool:
    """Migrate to this version; False, with nothing changed, if the database is newer than that.

    That is no error: the old version must start beside the new one, and again for a rollback.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError:
        # Checked only now: another process may have migrated while this one waited for the lock.
        with rt.reading() as session:
            if not revisions(session).is_newer:
                raise
        return False
    return True


def _is_used(rt: Runtime) -> bool:
    """Return whether the database has been used with keys; some or all tables may be missing."""
    with rt.reading() as session:
        tables = sa.inspect(session.connection()).get_table_names()
        return any(
            session.execute(sa.select(sa.exists().select_from(model).where(used))).scalar_one()
            for model, used in USED_WITH_KEYS
            if model.__tablename__ in tables
        )


def setup_state(rt: Runtime) -> SetupState:
    """Return how far the installation is set up.

    Raises: NoAdministrator.
    """
    try:
        with rt.reading() as session:
            return setup.current_state(session)
    except AdministratorMissing:
        raise NoAdministrator from None


def bootstrap_storage(rt: Runtime, by: Operator) -> dict[str, Any]:
    """Complete the default storage route; return its ids, and how far the set-up is."""
    return {**vars(storage.bootstrap(rt, by)), "setup_state": setup_state(rt)}
