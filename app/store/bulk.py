"""Changes any number of rows with one statement, and deletes them in batches."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Delete, Update
from sqlalchemy.orm import Session

from app.core.runtime import Runtime

BATCH_ROWS = 500


def change(session: Session, statement: Update | Delete) -> int:
    """Change rows and return how many; objects loaded in `session` are not updated."""
    result = session.execute(statement.execution_options(synchronize_session=False))
    count: int = result.rowcount  # type: ignore[attr-defined]
    return count


def delete_in_batches(
    rt: Runtime, delete_some: Callable[[Session, datetime, int], int], before: datetime
) -> int:
    """Repeat `delete_some(session, before, most)` until nothing is left; return how many went.

    Each batch is a transaction of its own, so that none holds its locks for long.
    """
    deleted = 0
    while True:
        with rt.transaction() as session:
            batch = delete_some(session, before, BATCH_ROWS)
        deleted += batch
        if not batch:
            return deleted
        rt.clock.sleep(0)
