"""A cache of fetched or computed values in which no key is fetched twice at the same time."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar

from app.core.clock import Clock

T = TypeVar("T")

DEFAULT_TTL = timedelta(minutes=5)  # decision A25


@dataclass(frozen=True, eq=False)
class CacheEntry(Generic[T]):
    """The result of one fetch, and until when (monotonic) it is fresh; compared by identity."""

    value: T = field(repr=False)
    fresh_until: float


class _Fetch(Generic[T]):
    """A fetch in progress; once `done` is set it has a result, an error or, if stopped, neither."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.found: CacheEntry[T] | None = None
        self.error: Exception | None = None


class FetchCache:
    """Values by key, each fetched when it is asked for and is missing or stale.

    Of concurrent callers for one key, one fetches and the others wait for its result. They share
    its failure as well, so that a dead server is not tried by each in turn; but failures are not
    cached, and the next caller tries again.
    """

    def __init__(self, clock: Clock, ttl: timedelta = DEFAULT_TTL) -> None:
        self._clock = clock
        self._ttl = ttl
        self._lock = threading.Lock()
        self._known: dict[Hashable, CacheEntry[Any]] = {}
        self._fetches: dict[Hashable, _Fetch[Any]] = {}

    def get(
        self,
        key: Hashable,
        fetch: Callable[[], T],
        *,
        ttl: timedelta | None = None,
        timeout_seconds: float | None = None,
    ) -> CacheEntry[T]:
        """Return the value of a key, fetching it unless a fresh one is known.

        `ttl` is how long a fetched value stays fresh; None means the cache's default.
        `timeout_seconds` limits the wait for another caller's fetch; None means until it ends.
        Raises: whatever `fetch` does; TimeoutError.
        """
        found = self._known.get(key)
        if found is not None and self._is_fresh(found):
            return found
        return self._fetched(key, fetch, None, self._ttl if ttl is None else ttl, timeout_seconds)

    def get_newer(
        self,
        key: Hashable,
        than: CacheEntry[T],
        fetch: Callable[[], T],
        *,
        timeout_seconds: float | None = None,
    ) -> CacheEntry[T]:
        """Return a value fetched after `than`, for a caller that found something missing in that.

        For `timeout_seconds` and errors see `get`.
        """
        return self._fetched(key, fetch, than, self._ttl, timeout_seconds)

    def _fetched(
        self,
        key: Hashable,
        fetch: Callable[[], T],
        than: CacheEntry[T] | None,
        ttl: timedelta,
        timeout_seconds: float | None,
    ) -> CacheEntry[T]:
        with self._lock:
            found = self._known.get(key)
            if found is not None and found is not than and self._is_fresh(found):
                return found
            under_way = self._fetches.get(key)
            if under_way is None:
                mine = self._fetches[key] = _Fetch()
        if under_way is None:
            return self._fetch(key, fetch, ttl, mine)
        if not under_way.done.wait(timeout_seconds):
            raise TimeoutError
        if under_way.error is not None:
            raise under_way.error
        # Neither: the caller that fetched was stopped, say by its own timeout, so fetch again.
        return under_way.found or self._fetched(key, fetch, than, ttl, timeout_seconds)

    def _fetch(
        self, key: Hashable, fetch: Callable[[], T], ttl: timedelta, mine: _Fetch[T]
    ) -> CacheEntry[T]:
        began = self._clock.monotonic()
        try:
            mine.found = CacheEntry(fetch(), began + ttl.total_seconds())
        except Exception as error:
            mine.error = error
            raise
        finally:
            with self._lock:
                del self._fetches[key]
                if mine.found is not None:
                    self._keep(key, mine.found)
            mine.done.set()
        return mine.found

    def _keep(self, key: Hashable, found: CacheEntry[Any]) -> None:
        """Store a result, and drop all that are no longer fresh."""
        self._known = {k: f for k, f in self._known.items() if self._is_fresh(f)}
        self._known[key] = found

    def _is_fresh(self, found: CacheEntry[Any]) -> bool:
        return self._clock.monotonic() < found.fresh_until
