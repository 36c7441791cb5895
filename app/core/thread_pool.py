"""Runs long computations in native threads, so that they never block the event loop."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar, cast

import gevent.monkey
import gevent.threadpool

from app.core.errors import Unavailable

T = TypeVar("T")
# On a saturated core, computing still gets a tenth of the time: neither it nor requests may starve.
NICENESS = 10


class Overloaded(Unavailable):
    """More work is queued than can be done soon."""


class ThreadPool:
    """Runs at most `size` calls at once, each in a native thread; callers wait for their result.

    Under a gevent worker the waiting greenlet yields; elsewhere the waiting thread blocks. The
    threads start on the first call, so a pool created before a fork still works after it.
    `is_nice` is for calls that compute: their threads get a lower priority than the event loop.
    """

    def __init__(self, size: int, max_queued: int = 256, *, is_nice: bool = False) -> None:
        self._size = size
        self._is_nice = is_nice
        self._places = threading.BoundedSemaphore(size + max_queued)

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return `function(*arguments)`, computed in a thread; its exceptions pass through.

        Raises: Overloaded when so many calls are queued that this one would take seconds.
        """
        if not self._places.acquire(blocking=False):
            raise Overloaded
        try:
            result, error = self._apply(self._outcome, (function, *arguments))
        finally:
            self._places.release()
        if error is not None:
            raise error
        return cast(T, result)

    def _outcome(
        self, function: Callable[..., T], *arguments: Any
    ) -> tuple[T | None, BaseException | None]:
        """Return `(result, None)` or `(None, exception)`: gevent would print every exception."""
        if self._is_nice:
            with suppress(OSError):  # not permitted, as in some containers
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
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
        return lambda function, arguments: executor.submit(function, *arguments).result()
