"""Blocking disk access off the event loop, with I/O errors turned into StorageFailed."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from app.avatars.errors import StorageFailed
from app.core.runtime import Runtime

T = TypeVar("T")

log = logging.getLogger(__name__)


def run_in_disk_thread(rt: Runtime, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function that blocks on the disk in a native thread and return its result.

    Raises: StorageFailed.
    """
    with disk_errors():
        return rt.disk.run(function, *arguments)


@contextmanager
def disk_errors() -> Iterator[None]:
    """Log an OSError raised in the block and raise StorageFailed in its place."""
    try:
        yield
    except OSError as error:
        raise storage_failed(error) from error


def storage_failed(error: OSError) -> StorageFailed:
    """Log an OSError and return the StorageFailed to raise in its place."""
    log.error("the folder of the avatars failed: %s", error)
    return StorageFailed()
