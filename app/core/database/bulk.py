"""Changing rows by one statement, however many they are, and deleting them a batch at a time."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Delete, Update
from sqlalchemy.orm import Session

from app.core.runtime import Runtime

BATCH_ROWS = 500


def change(session: Session, statement: Update | Delete) -> int:
    """Change rows and return how many they were; objects in `session` do not follow."""
    result = session.execute(statement.execution_options(synchronize_session=False))
    count: int = result.rowcount  # type: ignore[attr-defined]
    return count


def delete_in_batches(
    rt: Runtime, delete_some: Callable[[Session, datetime, int], int], before: datetime
) -> int:
    """Repeat `delete_some(session, before, most)` until nothing is left; return how many rows went.

    Each batch is a transaction of its own, so that nobody waits long for the table.
    """
    deleted = 0
    while True:
        with rt.transaction() as session:
            batch = delete_some(session, before, BATCH_ROWS)
        deleted += batch
        if not batch:
            return deleted
        rt.clock.sleep(0)
