"""Restores a running service to its initial state."""

import sqlalchemy as sa

from app.core.runtime import Runtime
from app.settings import queries as settings_queries
from app.settings import service as settings
from app.store.db import Base
from app.store.redis import connect

# Tables whose rows the migrations and the bootstrap have written.
FILLED_TABLES = frozenset(
    {
        "named_locks",
        "storage_policies",
        "storage_policy_groups",
        "storage_policy_group_items",
    }
)


class InitialState:
    """The initial state of an unused service that shares its stores with `rt`."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        with rt.reading() as connection:
            self._settings = settings_queries.list_texts(connection)
            self._rows = [
                (table, [dict(row) for row in connection.execute(sa.select(table)).mappings()])
                for table in Base.metadata.sorted_tables
                if table.name in FILLED_TABLES
            ]

    def restore(self) -> None:
        """Remove accounts, sessions and counters; settings and storage are as they were."""
        with connect(self._rt.config.redis_url, timeout_seconds=30) as redis:
            redis.flushdb()
        with self._rt.transaction() as session:
            for table in reversed(Base.metadata.sorted_tables):
                session.execute(sa.delete(table))
            for table, rows in self._rows:
                if rows:
                    session.execute(sa.insert(table), rows)
            for name, text in self._settings.items():
                settings_queries.store(session, name, text, self._rt.clock.now())
        settings.announce(self._rt)
