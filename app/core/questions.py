"""Questions that know no end of their own: each is asked in a thread, which nobody has to wait for.

Such as one to the system's resolver, which cannot be interrupted.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def ask_in_thread(ask: Callable[[], T], *, thread: str) -> Future[T]:
    """Begin to ask, in a thread of this name; return the answer to come."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name=thread, daemon=True).start()
    return answer
