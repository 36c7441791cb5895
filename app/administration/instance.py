"""Prepares an instance: its folder, its key file and the tables of its database."""

import logging

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from app.administration.errors import KeysMissing
from app.core import folders
from app.core.config import MIGRATIONS
from app.core.database.revisions import revisions
from app.core.db import Base
from app.core.runtime import Runtime
from app.external_auth.models import Provider
from app.mail.models import OutboxMail
from app.settings import keys
from app.settings.models import SystemConfig
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
    is_without_file = file is not None and file.is_missing
    if rt.keyring.is_file and not rt.keyring.path.exists():
        if not new_keys and not is_without_file and _is_used(rt):
            raise KeysMissing
        rt.keyring.create()
    elif rt.keyring.is_file and file is not None and is_without_file:
        log.warning(
            "making a new database, %s, for keys that are not new: was one lost?", file.path
        )
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
        with rt.reading() as reader:
            if not revisions(reader).is_newer:
                raise
        return False
    return True


def _is_used(rt: Runtime) -> bool:
    """Return whether the database has been used with keys; some or all tables may be missing."""
    with rt.reading() as connection:
        tables = sa.inspect(connection.connection()).get_table_names()
        return any(
            connection.execute(sa.select(sa.exists().select_from(model).where(used))).scalar_one()
            for model, used in USED_WITH_KEYS
            if model.__tablename__ in tables
        )
