"""SQLite's single writer: connection settings, whose turn it is, and waiting for the lock.

No writer waits in C, which would block the event loop.
"""

import sqlite3
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from sqlalchemy.exc import OperationalError

from app.core import wait_times
from app.core.clock import Clock
from app.core.database.sqlite_errors import kind_of
from app.core.errors import DatabaseUnavailable
from app.core.tokens import random_fraction

T = TypeVar("T")

# How long a reader waits for a lock in C; a writer never makes it wait.
BUSY_WAIT_MS = 2
# Another process's whole transaction takes a tenth of this. A sleep, which the event loop rounds up
# to a millisecond or more, would be ten times as long as what it waits for.
SPIN_SECONDS = 0.001
LOCK_TIMEOUT_SECONDS = 10.0


def prepare(connection: Any, busy_wait_ms: int, *pragmas: str) -> None:
    """Set up one connection; `busy_wait_ms` is how long it waits for a lock by itself, in C.

    Only `Database` begins transactions, not the driver.
    """
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",  # a killed process loses nothing; a power failure may
        "foreign_keys=ON",
        f"busy_timeout={busy_wait_ms}",
        *pragmas,
    ):
        connection.execute(f"PRAGMA {pragma}")


def retry_while_busy(clock: Clock, ask: Callable[[], T]) -> T:
    """Retry `ask` until it gets the lock it needs, letting other greenlets run meanwhile.

    Raises: DatabaseUnavailable after LOCK_TIMEOUT_SECONDS, or if `ask` fails for another reason.
    """
    began = clock.monotonic()
    while True:
        try:
            return ask()
        except (OperationalError, sqlite3.OperationalError) as error:
            failed = clock.monotonic()
            is_busy = kind_of(error) == sqlite3.SQLITE_BUSY
            if not is_busy or failed - began > LOCK_TIMEOUT_SECONDS:
                raise DatabaseUnavailable from error
            is_soon = failed - began < SPIN_SECONDS
            clock.sleep(0 if is_soon else 0.0005 + 0.002 * random_fraction())
            wait_times.add_database(clock.monotonic() - failed)


class WriterLock:
    """The lock of this process's one writer at a time; `wrote` is called after each turn.

    Entering raises DatabaseUnavailable if the lock is not acquired in time.
    """

    def __init__(self, wrote: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._wrote = wrote

    def __enter__(self) -> None:
        began = perf_counter()
        is_ours = self._lock.acquire(timeout=LOCK_TIMEOUT_SECONDS)
        wait_times.add_database(perf_counter() - began)
        if not is_ours:
            raise DatabaseUnavailable  # each writer ahead may have waited as long

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self._wrote()
