"""Waiting for the disk, and what becomes of its failures."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from app.avatars.errors import StorageFailed
from app.core.runtime import Runtime

T = TypeVar("T")

log = logging.getLogger(__name__)


def on_disk(rt: Runtime, function: Callable[..., T], *arguments: Any) -> T:
    """Run what waits for the disk in a native thread.

    Raises: StorageFailed.
    """
    with disk_errors():
        return rt.disk.run(function, *arguments)


@contextmanager
def disk_errors() -> Iterator[None]:
    """Log a failure of the disk and raise StorageFailed for it."""
    try:
        yield
    except OSError as error:
        raise storage_failed(error) from error


def storage_failed(error: OSError) -> StorageFailed:
    """Log a failure of the disk and return what it is to the caller."""
    log.error("the folder of the avatars failed: %s", error)
    return StorageFailed()
