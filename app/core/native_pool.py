"""Runs long computations in native threads, so that they never block the event loop."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar, cast

import gevent.monkey
import gevent.threadpool

from app.core import scheduling
from app.core.errors import Unavailable

T = TypeVar("T")

# At half of this, the slowest of a page's requests took twice as long during a flood of logins, and
# logins on their own were no faster. On a saturated core, hashing still gets a tenth of the time:
# neither hashing nor requests may starve the other.
NICENESS = 10


class Overloaded(Unavailable):
    """More work is queued than can be done soon."""


class NativePool:
    """Runs at most `size` calls at once, each in a native thread; callers wait for their result.

    Under a gevent worker the waiting greenlet yields; elsewhere the waiting thread blocks. The
    threads start on the first call, so a pool created before a fork still works after it.

    CPU-bound calls run at a lower priority than the event loop, so that they do not delay short
    requests. A niceness of 0 is for calls that only wait for the disk.
    """

    def __init__(self, size: int, max_queued: int = 256, niceness: int = NICENESS) -> None:
        self._size = size
        self._niceness = niceness
        self._places = threading.BoundedSemaphore(size + max_queued)
        self._polite: set[int] = set()

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return `function(*arguments)`, computed in a thread; its exceptions pass through.

        Raises: Overloaded when so many calls are queued that this one would take seconds.
        """
        if not self._places.acquire(blocking=False):
            raise Overloaded
        try:
            result, error = self._apply(self._run_nicely, (function, *arguments))
        finally:
            self._places.release()
        try:
            if error is not None:
                raise error
            return cast(T, result)
        finally:
            del error  # breaks the reference cycle of its traceback and this frame

    def _run_nicely(
        self, function: Callable[..., T], *arguments: Any
    ) -> tuple[T | None, BaseException | None]:
        """Return `(result, None)` or `(None, exception)`.

        gevent would print every exception, even an expected one, before passing it on; where that
        fails, e.g. on a full disk, the caller would wait for ever.
        """
        thread = threading.get_native_id()
        if self._niceness and thread not in self._polite:
            self._polite.add(thread)
            scheduling.lower_priority(thread, self._niceness)
        try:
            return function(*arguments), None
        except BaseException as error:
            return None, error

    @cached_property
    def _apply(self) -> Callable[..., Any]:
        if gevent.monkey.is_module_patched("threading"):
            pool: Callable[..., Any] = gevent.threadpool.ThreadPool(self._size).apply
            return pool
        executor = ThreadPoolExecutor(self._size, thread_name_prefix="native")

        def apply(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
            return executor.submit(function, *arguments).result()

        return apply
