"""Runs the migrations on the application's own engine, one process at a time."""

from alembic import context
from sqlalchemy import Connection

from app.core.database.database import extension
from app.web.runtime import runtime

# Any number will do; it only has to be the same in every process that migrates.
MIGRATION_LOCK = 4_242_001


def run() -> None:
    """Apply or compare the migrations inside one transaction; nothing else makes a SQLite file."""
    if (file := runtime().database.file) is not None:
        file.make()
    with extension.engine.connect() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        if is_sqlite:
            # Changing a table means replacing it, which must not cascade into the others.
            driver_connection(connection).execute("PRAGMA foreign_keys=OFF")
        try:
            context.configure(
                connection=connection,
                target_metadata=extension.metadata,
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
    """Return the driver's own connection, on which no transaction is begun for a PRAGMA."""
    return connection.connection.driver_connection


def wait_for_turn(connection: Connection) -> None:
    """Let instances that start together migrate one after the other; SQLite does so by itself."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")


run()
