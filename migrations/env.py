"""Run the migrations on the application's own engine, in one process at a time."""

from alembic import context
from sqlalchemy import Connection

from app.store.db import db
from app.web.runtime import runtime

# An arbitrary advisory lock key, the same in every process that migrates.
MIGRATION_LOCK = 4_242_001


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
                wait_for_turn(connection)
                context.run_migrations()
        finally:
            if is_sqlite:
                driver_connection(connection).execute("PRAGMA foreign_keys=ON")


def driver_connection(connection: Connection):
    """Return the DBAPI connection; SQLAlchemy's would begin a transaction before the PRAGMA."""
    return connection.connection.driver_connection


def wait_for_turn(connection: Connection) -> None:
    """Make concurrently starting instances migrate in turn; SQLite's own lock already does."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")


run()
