"""Removal of what killed uploads left behind, and of files no account refers to."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

from app.avatars import files, queries, service
from app.avatars.errors import StorageFailed
from app.avatars.files import Staged, on_disk
from app.core.runtime import Runtime
from app.core.thread_pool import Overloaded
from app.store.database import DATABASE_ERRORS, reason_of

log = logging.getLogger(__name__)

BATCH_USERS = 500
# Longer than any upload takes: of 33 MiB, 128 KiB may take two minutes.
ABANDONED_AFTER = timedelta(hours=12)
# After any of these, the next cleanup makes files and rows consistent; nothing is lost till then.
FAILURES = (StorageFailed, *DATABASE_ERRORS, Overloaded)


def sweep(rt: Runtime) -> int:
    """Clean up after uploads whose process was killed; return how many.

    Safe while uploads are running, on other instances too: only old ones are looked at. A killed
    upload may have left published files that the account's row does not name, so the account is
    reconciled.
    """
    before = (rt.clock.now() - ABANDONED_AFTER).timestamp()
    abandoned = on_disk(files.list_abandoned, rt.config.avatar_dir, before)
    return sum(_clear_up(rt, staged) for staged in abandoned)


def cleanup(rt: Runtime) -> int:
    """Remove everything in the avatar folder that no account refers to; return how many items."""
    removed = sweep(rt)
    user_ids = iter(on_disk(lambda: list(files.list_users(rt.config.avatar_dir))))
    while batch := list(islice(user_ids, BATCH_USERS)):
        removed += sum(_reconciled(rt, user_id) for user_id in _suspicious(rt, batch))
        rt.clock.sleep(0)
    return removed


def forget(rt: Runtime, user_id: int) -> None:
    """Remove the files of a deleted account; on failure they are left to the next cleanup."""
    try:
        service.reconcile(rt, user_id)
    except FAILURES as error:
        log.warning(
            "the avatar of a deleted account is left to the next cleanup: %s", reason_of(error)
        )


def _clear_up(rt: Runtime, staged: Staged) -> bool:
    """Reconcile the account and clear the upload; False if a later sweep has to finish."""
    try:
        service.reconcile(rt, staged.user_id)
    except FAILURES as error:
        log.warning("an abandoned upload is left to the next cleanup: %s", reason_of(error))
        return False
    on_disk(staged.clear)
    return not staged.folder.exists()


def _reconciled(rt: Runtime, user_id: int) -> int:
    """Reconcile one account; a folder that cannot be cleaned up must not stop the others."""
    try:
        return service.reconcile(rt, user_id)
    except StorageFailed:
        return 0  # already logged


def _suspicious(rt: Runtime, user_ids: list[int]) -> Iterator[int]:
    """Yield the accounts whose folder differs from what the profile row says."""
    root = rt.config.avatar_dir
    listed = on_disk(lambda: [_names(root, user_id) for user_id in user_ids])
    with rt.reading() as session:
        stored = queries.list_avatar_keys(session, user_ids)
    for user_id, names in zip(user_ids, listed, strict=True):
        if names is None or [files.key(user_id, name) for name in names] != [stored.get(user_id)]:
            yield user_id


def _names(root: Path, user_id: int) -> list[str] | None:
    """List an account's folder; None if it cannot be read."""
    try:
        return files.list_names(root, user_id)
    except OSError:
        return None
