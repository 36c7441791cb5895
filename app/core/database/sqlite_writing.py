"""SQLite's one writer: what its connections are set to, whose turn it is, and waiting for the lock.

Nothing here sleeps in C, which would stop an event loop.
"""

import sqlite3
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from sqlalchemy.exc import OperationalError

from app.core import wait_times
from app.core.clock import Clock
from app.core.errors import DatabaseUnavailable
from app.core.tokens import random_fraction

T = TypeVar("T")

BUSY_WAIT_MS = 2
PATIENCE_SECONDS = 10.0


def prepare(connection: Any, *pragmas: str) -> None:
    """Set up one connection; transactions are begun by `Database` alone."""
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",  # a killed process loses nothing, only a power cut may
        "foreign_keys=ON",
        f"busy_timeout={BUSY_WAIT_MS}",
        *pragmas,
    ):
        connection.execute(f"PRAGMA {pragma}")


def patiently(clock: Clock, write: Callable[[], T]) -> T:
    """Repeat what needs the write lock until it is had, letting others run meanwhile.

    Raises: DatabaseUnavailable.
    """
    give_up_at = clock.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return write()
        except (OperationalError, sqlite3.OperationalError) as error:
            if "locked" not in str(error) or clock.monotonic() > give_up_at:
                raise DatabaseUnavailable from error
            pause = 0.0005 + 0.002 * random_fraction()
            clock.sleep(pause)
            wait_times.add_database(pause)


class WriteTurn:
    """The turn of the one writer there is at a time in this process; `wrote` is told of each."""

    def __init__(self, wrote: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._wrote = wrote

    def __enter__(self) -> None:
        began = perf_counter()
        self._lock.acquire()
        wait_times.add_database(perf_counter() - began)

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self._wrote()
