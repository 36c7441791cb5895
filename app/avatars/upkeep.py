"""What dead processes left, and what lies in folders that nothing names (spec 04 §8.5)."""

import logging
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from app.avatars import files, publishing, queries, staging
from app.avatars.disk import on_disk
from app.avatars.errors import StorageFailed
from app.core.database.database import DATABASE_AWAY
from app.core.database.failures import reason_of
from app.core.native_pool import Overloaded
from app.core.runtime import Runtime

log = logging.getLogger(__name__)

BATCH_USERS = 500
STOP_SECONDS = 2.0
# Files and rows agree again with the next cleanup; nothing is lost by waiting for it.
FAILURES = (StorageFailed, *DATABASE_AWAY, Overloaded)


def start(rt: Runtime) -> Callable[[], None]:
    """Sweep once in the background; return how to wait for its end."""

    def run() -> None:
        try:
            sweep(rt)
        except StorageFailed:
            return  # it is in the log, and `flask doctor` tells, too

    thread = threading.Thread(target=run, name="avatar-sweep", daemon=True)
    thread.start()
    return lambda: thread.join(timeout=STOP_SECONDS)


def sweep(rt: Runtime) -> int:
    """Clear up after uploads whose process was killed; return how many.

    Safe beside running uploads, of other instances too: theirs are locked. An account whose upload
    was killed may have files that its row does not name, so they are looked after, too.
    """
    places, cleared = staging.abandoned(rt.config.avatar_dir), 0
    # One after the other: each is an open file and a lock, which nobody else can have meanwhile.
    while place := on_disk(rt, next, places, None):
        cleared += _clear_up(rt, place)
    return cleared


def cleanup(rt: Runtime) -> int:
    """Remove everything in the folder of the avatars that no account names; return how much."""
    removed = sweep(rt)
    user_ids = iter(on_disk(rt, lambda: list(files.list_users(rt.config.avatar_dir))))
    while batch := list(islice(user_ids, BATCH_USERS)):
        removed += sum(_reconciled(rt, user_id) for user_id in _suspicious(rt, batch))
        rt.clock.sleep(0)
    return removed


def forget(rt: Runtime, user_id: int) -> None:
    """Remove the files of an account that was deleted; what fails is left to the next cleanup."""
    try:
        publishing.reconcile(rt, user_id)
    except FAILURES as error:
        log.warning(
            "the avatar of a deleted account is left to the next cleanup: %s", reason_of(error)
        )


def _clear_up(rt: Runtime, place: staging.Place) -> bool:
    """Return whether nothing is left to do; the lock is given up in any case."""
    is_done = False
    try:
        publishing.reconcile(rt, place.user_id)
        is_done = True
    except FAILURES as error:
        log.warning("an abandoned upload is left to the next cleanup: %s", reason_of(error))
        place.keep()
    finally:
        try:
            on_disk(rt, place.clear)
        except StorageFailed:
            is_done = False  # it is in the log
    return is_done


def _reconciled(rt: Runtime, user_id: int) -> int:
    """Reconcile one account; a folder that cannot be cleared keeps nobody from the others."""
    try:
        return publishing.reconcile(rt, user_id)
    except StorageFailed:
        return 0  # it is in the log


def _suspicious(rt: Runtime, user_ids: list[int]) -> Iterator[int]:
    """Yield the accounts whose folder holds something else than the row says."""
    root = rt.config.avatar_dir
    listed = on_disk(rt, lambda: [_names(root, user_id) for user_id in user_ids])
    with rt.reading() as connection:
        keys = queries.list_keys(connection, user_ids)
    for user_id, names in zip(user_ids, listed, strict=True):
        if names is None or [files.key(user_id, name) for name in names] != [keys.get(user_id)]:
            yield user_id


def _names(root: Path, user_id: int) -> list[str] | None:
    """Return what is in an account's folder; None where that cannot be read."""
    try:
        return files.list_names(root, user_id)
    except OSError:
        return None
