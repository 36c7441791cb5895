"""Blocking calls without a timeout: each runs in a thread of its own, which can be abandoned.

The system's resolver, for example, cannot be interrupted.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def run_in_daemon_thread(ask: Callable[[], T], *, thread: str) -> Future[T]:
    """Start `ask` in a new daemon thread of this name; return the future of its result."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name=thread, daemon=True).start()
    return answer
