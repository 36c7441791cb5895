"""What one account may have of what all uploads share, in this process.

An upload may take half an hour (`app/serving/body.py`), and until then it holds a connection and as
much of the disk as has arrived. So one account may not have any number of them. And rendering may
take seconds, of which few go on at a time: those of one account take turns, or one that sends many
would keep everybody else waiting.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from app.avatars.errors import TooManyUploads

MAX_UPLOADS = 20
RETRY_SECONDS = 10

_counts: Counter[int] = Counter()
# For as long as an account has uploads.
_turns: dict[int, Lock] = {}
_lock = Lock()


@contextmanager
def counted(user_id: int) -> Iterator[None]:
    """Count an upload of this account for as long as it lasts.

    Raises: TooManyUploads.
    """
    with _lock:
        if _counts[user_id] >= MAX_UPLOADS:
            raise TooManyUploads(retry_after=RETRY_SECONDS)
        _counts[user_id] += 1
    try:
        yield
    finally:
        with _lock:
            _counts[user_id] -= 1
            if not _counts[user_id]:
                del _counts[user_id]
                _turns.pop(user_id, None)


def turn(user_id: int) -> Lock:
    """Return what an account whose upload is `counted` holds while it is rendered."""
    with _lock:
        return _turns.setdefault(user_id, Lock())
