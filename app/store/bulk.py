"""Changes any number of rows with one statement, and deletes them in batches."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Delete, Update
from sqlalchemy.orm import Session

from app.core.runtime import Runtime

T = TypeVar("T")
BATCH_ROWS = 500
MOST_FOUND = 200 * BATCH_ROWS


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


def delete_found(
    rt: Runtime,
    find_some: Callable[[Session, datetime, int], Sequence[T]],
    delete_these: Callable[[Session, datetime, Sequence[T]], int],
    before: datetime,
) -> int:
    """Delete in batches what no index finds; return how many went.

    Looking for it reads the whole table, so that is done once, by `find_some(session, before,
    most)`, and not for each batch. `delete_these(session, before, ids)` judges the rows once more.
    """
    deleted = 0
    while True:
        with rt.reading() as session:
            found = find_some(session, before, MOST_FOUND)
        for first in range(0, len(found), BATCH_ROWS):
            with rt.transaction() as session:
                deleted += delete_these(session, before, found[first : first + BATCH_ROWS])
            rt.clock.sleep(0)
        if len(found) < MOST_FOUND:
            return deleted
