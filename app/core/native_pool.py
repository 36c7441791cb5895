"""Runs long computations in native threads, so that an event loop never waits for one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

import gevent.monkey
import gevent.threadpool

T = TypeVar("T")


class NativePool:
    """At most `size` calls at once, each in a real thread; callers wait for their result.

    Under a gevent worker the waiting greenlet yields; elsewhere the waiting thread blocks. The
    threads start with the first call, so a pool made before a fork is whole after it.
    """

    def __init__(self, size: int) -> None:
        self._size = size

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return `function(*arguments)`, computed in a thread; its exceptions pass through."""
        result: T = self._apply(function, arguments)
        return result

    @cached_property
    def _apply(self) -> Callable[..., Any]:
        if gevent.monkey.is_module_patched("threading"):
            pool: Callable[..., Any] = gevent.threadpool.ThreadPool(self._size).apply
            return pool
        executor = ThreadPoolExecutor(self._size, thread_name_prefix="native")

        def apply(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
            return executor.submit(function, *arguments).result()

        return apply
