"""Limits of one account's share of the resources for uploads, per process.

An upload may take half an hour (`app/serving/body.py`), during which it occupies a connection and
the disk space of what has arrived, so the number of concurrent uploads per account is limited.
Rendering may take seconds, and few renders run at a time: those of one account run one after the
other, or an account that uploads many images would starve all others.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from app.avatars.errors import TooManyUploads

MAX_UPLOADS = 20
RETRY_SECONDS = 10

_counts: Counter[int] = Counter()
# An entry exists only while its account has uploads.
_render_locks: dict[int, Lock] = {}
_lock = Lock()


@contextmanager
def upload_slot(user_id: int) -> Iterator[None]:
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
                _render_locks.pop(user_id, None)


def render_lock(user_id: int) -> Lock:
    """Return the lock that serializes the renders of an account; call it within `upload_slot`."""
    with _lock:
        return _render_locks.setdefault(user_id, Lock())
