"""The instance folder of a run: private, and used by one run at a time."""

import fcntl
import os
import time
from pathlib import Path
from typing import IO

# Covers gunicorn's graceful stop (10 s) and Valkey's final write.
SHUTDOWN_SECONDS = 20.0


class InstanceError(Exception):
    """The folder cannot be used; the message says why."""


def make_private(folder: Path) -> None:
    """Create `folder` for this user alone, or make an existing one of this user private.

    The parent may be /tmp, where anybody can create a folder or symlink of that name first.
    Raises: InstanceError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        owners = {folder.lstat().st_uid, folder.stat().st_uid}
        if owners != {os.getuid()}:
            raise InstanceError(f"{folder} belongs to another user")
        folder.chmod(0o700)
    except FileExistsError:
        raise InstanceError(f"{folder} is no folder") from None
    except OSError as error:
        raise InstanceError(f"{folder}: {error.strerror}") from error


def lock_run(instance: Path) -> IO[bytes]:
    """Take the launcher's lock, which is released when the launcher exits.

    Raises: InstanceError, without waiting, if another run uses the folder.
    """
    lock = (instance / "serve.lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise InstanceError(f"another bin/serve is running on {instance}") from None
    return lock


def lock_children(instance: Path, *, seconds: float = SHUTDOWN_SECONDS) -> IO[bytes]:
    """Take the lock that the children inherit, so that it outlives a killed launcher.

    The children of a killed launcher take a moment to finish; two Valkeys on the same files would
    corrupt them.
    Raises: InstanceError, if the lock is not free within `seconds`.
    """
    lock = (instance / "children.lock").open("ab")
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            lock.close()
            raise InstanceError(f"processes of an earlier run still use {instance}") from None
        return lock
