"""Actions that run once a transaction is committed, and only then."""

from collections.abc import Callable

from sqlalchemy import event
from sqlalchemy.orm import Session


def after_commit(session: Session, do: Callable[[], None]) -> None:
    """Call `do` once the current transaction is committed; never if it is rolled back.

    SQLAlchemy also signals a commit when a savepoint is released: its changes are not visible to
    others yet then, and may never be.
    """

    def committed(ended: Session) -> None:
        if not ended.in_nested_transaction():
            do()

    event.listen(session, "after_commit", committed)
