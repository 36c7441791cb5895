"""Runtime settings as one process sees them: typed, in memory, at most a second old.

Rows hold text. A change is announced on Redis and makes every worker reload at once; the age limit
covers a missed message. While the database is down, the values read last stay in force, whatever
was announced or missed meanwhile.
"""

import logging
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from app.core.clock import Clock
from app.core.logs import Outage
from app.core.setting_kinds import Key
from app.store.database import DATABASE_ERRORS, reason_of

T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_AGE_SECONDS = 1.0

# The stored texts, and the values parsed from them so far.
_Known = tuple[Mapping[str, str], dict[str, Any]]


class LiveSettings:
    """Settings by key; `load` returns every stored text by its key's name.

    Call `get` before opening a transaction, since it may need a connection of its own.
    """

    def __init__(self, load: Callable[[], Mapping[str, str]], clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._known: _Known | None = None
        self._stale_at = self._changed_at = -math.inf
        self._reloading = threading.Lock()
        self._outage = Outage(
            log,
            "keeping the settings last read: the database does not answer",
            "settings are current again: the database answers",
        )

    def get(self, key: Key[T]) -> T:
        """Return the value in force: the stored one, or the key's default."""
        texts, parsed = self.renew()
        if key.name not in parsed:
            parsed[key.name] = key.value_of(texts.get(key.name))
        return cast("T", parsed[key.name])

    def renew(self) -> _Known:
        """Reload if the settings are stale; called just before a transaction begins.

        Its steps that call `get`, say for the audit log, then rarely need a second connection.
        """
        known, now = self._known, self._clock.monotonic()
        # After a change nobody goes on with the old values, unless a second has passed without an
        # answer from the database. Values that are merely old were in force a moment ago.
        patience = max(0.0, self._changed_at + MAX_AGE_SECONDS - now)
        if known and not patience and now < self._stale_at:
            return known
        if not self._reloading.acquire(timeout=patience if known else -1) and known:
            return known
        try:
            if self._known is None or self._clock.monotonic() >= self._stale_at:
                self._known = self._reloaded(self._known)
            return self._known
        finally:
            self._reloading.release()

    def expire(self) -> None:
        """Make the next `get` reload; the known values stay as a fallback for an outage."""
        self._changed_at = self._clock.monotonic()
        self._stale_at = -math.inf

    def forget(self) -> None:
        """Drop everything, as after a fork: the parent may have read the database long ago."""
        self._known = None

    def _reloaded(self, last: _Known | None) -> _Known:
        # Set before the rows are read, so that a change meanwhile causes another reload.
        self._stale_at = self._clock.monotonic() + MAX_AGE_SECONDS
        try:
            texts = self._load()
        except DATABASE_ERRORS as error:
            if last is None:
                raise
            self._outage.record_failure(reason_of(error))
            # The attempt itself may have taken longer than the age limit.
            self._stale_at = self._clock.monotonic() + MAX_AGE_SECONDS
            return last
        self._outage.record_success()
        return last if last and last[0] == texts else (texts, {})
