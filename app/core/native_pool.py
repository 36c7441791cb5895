"""Runs long computations in native threads, so that an event loop never waits for one."""

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

# With half of it the slowest of a page's requests took twice as long beside a flood of logins, and
# logins by themselves are no faster. Of a core that never rests they get a tenth: hashing must not
# stop requests, nor they it.
NICENESS = 10


class Overloaded(Unavailable):
    """More work waits than can be done soon."""


class NativePool:
    """At most `size` calls at once, each in a real thread; callers wait for their result.

    Under a gevent worker the waiting greenlet yields; elsewhere the waiting thread blocks. The
    threads start with the first call, so a pool made before a fork is whole after it.

    Calls that compute step back behind the event loop, so that short requests are not kept
    waiting. A niceness of 0 is for calls that wait for a disk and compute nothing.
    """

    def __init__(self, size: int, most_waiting: int = 256, niceness: int = NICENESS) -> None:
        self._size = size
        self._niceness = niceness
        self._places = threading.BoundedSemaphore(size + most_waiting)
        self._polite: set[int] = set()

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return `function(*arguments)`, computed in a thread; its exceptions pass through.

        Raises: Overloaded when so many calls wait already that this one would take seconds.
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
            del error  # which holds this frame, as this frame holds it

    def _run_nicely(
        self, function: Callable[..., T], *arguments: Any
    ) -> tuple[T | None, BaseException | None]:
        """Return the result, or the exception.

        gevent would print an exception before it passes it on: expected ones, too, and where
        nothing can be written, say on a full disk, the caller would wait for ever.
        """
        thread = threading.get_native_id()
        if self._niceness and thread not in self._polite:
            self._polite.add(thread)
            scheduling.step_back(thread, self._niceness)
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
