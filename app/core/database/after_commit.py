"""What is done once a transaction is committed, and only then."""

from collections.abc import Callable

from sqlalchemy import event
from sqlalchemy.orm import Session


def after_commit(session: Session, do: Callable[[], None]) -> None:
    """Have `do` called once the running transaction is committed; never if all of it is undone.

    SQLAlchemy announces the release of a savepoint as a commit, too: others do not see the changes
    yet then, and may never.
    """

    def committed(ended: Session) -> None:
        if not ended.in_nested_transaction():
            do()

    event.listen(session, "after_commit", committed)
