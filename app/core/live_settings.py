"""Runtime settings as one process sees them: typed, in memory, at most a second old.

Rows hold text. A change is announced on Redis and makes every worker reload at once; the age limit
covers a missed message. While the database is down, the values read last stay in force, whatever
was announced or missed meanwhile.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from sqlalchemy.exc import SQLAlchemyError

from app.core.clock import Clock
from app.core.database.failures import reason_of
from app.core.logs import Outage
from app.core.setting_kinds import Key

T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_AGE_SECONDS = 1.0


@dataclass(frozen=True)
class _Snapshot:
    """The stored texts, read after the change with this number was heard of."""

    texts: Mapping[str, str] = field(repr=False)
    loaded_at: float
    change: int
    parsed: dict[str, Any] = field(default_factory=dict, repr=False)


class LiveSettings:
    """Settings by key; `load` returns every stored text by its key's name.

    Call `get` before opening a transaction, since it may need a connection of its own.
    """

    def __init__(self, load: Callable[[], Mapping[str, str]], clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._snapshot: _Snapshot | None = None
        self._change, self._changed_at = 0, clock.monotonic()
        self._reloading = threading.Lock()
        self._outage = Outage(
            log,
            "settings stay as they were read last: the database does not answer",
            "settings are read as they are: the database answers again",
        )

    def get(self, key: Key[T]) -> T:
        """Return the value in force: the stored one, or the key's default."""
        snapshot = self._current()
        if key.name not in snapshot.parsed:
            snapshot.parsed[key.name] = key.value_of(snapshot.texts.get(key.name))
        return cast("T", snapshot.parsed[key.name])

    def renew(self) -> None:
        """Reload if the settings are stale; called just before a transaction begins.

        Its steps that call `get`, say for the audit log, then rarely need a second connection.
        """
        self._current()

    def expire(self) -> None:
        """Make the next `get` reload; the known values stay as a fallback for an outage."""
        self._changed_at = self._clock.monotonic()
        self._change += 1

    def forget(self) -> None:
        """Drop everything, as after a fork: the parent may have read the database long ago."""
        self._snapshot = None

    def _current(self) -> _Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            with self._reloading:
                return self._reload()
        if self._is_fresh(snapshot) or not self._reloading.acquire(timeout=self._patience()):
            return snapshot
        try:
            return self._reload()
        finally:
            self._reloading.release()

    def _is_fresh(self, snapshot: _Snapshot) -> bool:
        age = self._clock.monotonic() - snapshot.loaded_at
        return snapshot.change == self._change and age < MAX_AGE_SECONDS

    def _patience(self) -> float:
        """Return for how many seconds to wait for the caller that reloads.

        After a change the old values may not be used, unless a second has passed without an answer
        from the database. Values that are merely old were in force a moment ago, and will do.
        """
        return max(0.0, self._changed_at + MAX_AGE_SECONDS - self._clock.monotonic())

    def _reload(self) -> _Snapshot:
        last = self._snapshot
        if last is not None and self._is_fresh(last):
            return last  # another caller was faster
        # Taken before the rows are read, so that a change meanwhile causes another reload.
        loaded_at, change = self._clock.monotonic(), self._change
        try:
            texts = self._load()
        except SQLAlchemyError as error:
            if last is None:
                raise
            self._outage.record_failure(reason_of(error))
            # Aged from now: the attempt itself may have taken longer than the age limit.
            texts, loaded_at = last.texts, self._clock.monotonic()
        else:
            self._outage.record_success()
        parsed = last.parsed if last is not None and last.texts == texts else {}
        self._snapshot = _Snapshot(texts, loaded_at, change, parsed)
        return self._snapshot
