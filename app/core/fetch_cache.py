"""A cache of fetched values in which no key is fetched twice at the same time."""

import threading
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Any, TypeVar

from cachetools import LRUCache, TTLCache

from app.core.clock import Clock

T = TypeVar("T")

DEFAULT_TTL = timedelta(minutes=5)
MAX_KEYS = 1024


class FetchCache:
    """Values by key, each fetched when it is asked for and is missing or stale.

    Of concurrent callers for one key one fetches, and the others wait. Failures are not kept: the
    next caller tries again.
    """

    def __init__(self, clock: Clock, ttl: timedelta = DEFAULT_TTL) -> None:
        self._known: TTLCache[Hashable, Any] = TTLCache(
            MAX_KEYS, ttl.total_seconds(), timer=clock.monotonic
        )
        # Losing one that is in use costs a second fetch, no more.
        self._fetching: LRUCache[Hashable, threading.Lock] = LRUCache(MAX_KEYS)
        self._lock = threading.Lock()

    def get(
        self, key: Hashable, fetch: Callable[[], T], *, seconds: float, other_than: T | None = None
    ) -> T:
        """Return the value of a key, fetching it unless a fresh one is known.

        `seconds` limits the wait for another caller's fetch. A caller that found something missing
        in a value passes it as `other_than`, and gets one fetched later.
        Raises: whatever `fetch` does; TimeoutError.
        """
        with self._lock:
            found: T | None = self._known.get(key)
            fetching = self._fetching.setdefault(key, threading.Lock())
        if found is not None and found is not other_than:
            return found
        if not fetching.acquire(timeout=max(0.0, seconds)):
            raise TimeoutError
        try:
            with self._lock:
                found = self._known.get(key)
            if found is None or found is other_than:
                found = fetch()
                with self._lock:
                    self._known[key] = found
            return found
        finally:
            fetching.release()
