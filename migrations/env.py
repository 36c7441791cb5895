"""Run the migrations on the application's own engine, in one process at a time."""

import logging
import time

import sqlalchemy as sa
from alembic import context
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from app.store.db import db
from app.web.runtime import runtime

# An arbitrary advisory lock key, the same in every process that migrates.
MIGRATION_LOCK = 4_242_001
# Requests of the old version wait meanwhile. Below PostgreSQL's deadlock_timeout (1 s), so that
# none of them is ended because it holds one table and waits for another.
LOCK_MS = 800
LOCK_PAUSE_SECONDS = 1.0
LOCK_ATTEMPTS = 100

log = logging.getLogger("gatehouse.migrations")


def run() -> None:
    """Apply or compare the migrations in one transaction; only here is a SQLite file created."""
    if (file := runtime().database.file) is not None:
        file.make()
    with db.engine.connect() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        if is_sqlite:
            # SQLite alters a table by replacing it; dropping the old one must not cascade.
            driver_connection(connection).execute("PRAGMA foreign_keys=OFF")
        try:
            context.configure(
                connection=connection,
                target_metadata=db.metadata,
                compare_type=True,
                render_as_batch=True,
                transactional_ddl=True,
            )
            with context.begin_transaction():
                if not is_sqlite:
                    wait_for_turn(connection)
                    if is_due():
                        lock_tables(connection)
                context.run_migrations()
        finally:
            if is_sqlite:
                driver_connection(connection).execute("PRAGMA foreign_keys=ON")


def driver_connection(connection: Connection):
    """Return the DBAPI connection; SQLAlchemy's would begin a transaction before the PRAGMA."""
    return connection.connection.driver_connection


def wait_for_turn(connection: Connection) -> None:
    """Make concurrently starting instances migrate in turn; SQLite's own lock already does."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")


def is_due() -> bool:
    """Return whether the tables are those of an older version."""
    older = {script.revision for script in context.script.walk_revisions()}
    return context.get_context().get_current_revision() in older - set(context.script.get_heads())


def lock_tables(connection: Connection) -> None:
    """Take every table at once, so that no request holds one that a migration needs later.

    Raises: OperationalError, if others, such as a backup, hold one all the time.
    """
    existing = set(sa.inspect(connection).get_table_names())
    names = [f'"{table.name}"' for table in db.metadata.sorted_tables if table.name in existing]
    for attempt in range(1, LOCK_ATTEMPTS + 1):
        try:
            with connection.begin_nested():
                connection.exec_driver_sql(f"SET LOCAL statement_timeout = {LOCK_MS}")
                connection.exec_driver_sql(f"LOCK TABLE {', '.join(names)}")
                connection.exec_driver_sql("SET LOCAL statement_timeout TO DEFAULT")
        except OperationalError:
            if attempt == LOCK_ATTEMPTS:
                raise
            if attempt % 10 == 0:
                log.warning("waiting for the tables, which others hold (a backup?)")
            time.sleep(LOCK_PAUSE_SECONDS)
        else:
            return


run()
