"""People who use a running service all the time while something is done to it."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.live import LiveClient, LiveService

PEOPLE = 4


@contextmanager
def load(
    service: LiveService, use: Callable[[LiveClient], Iterable[int]], allowed: set[Any]
) -> Iterator[Counter[Any]]:
    """Have people `use` the service again and again; yield how often they got which status.

    What is no answer counts as its error. All of them are answered until the end, and only with
    what is allowed.
    """
    stopped, counting, statuses = threading.Event(), threading.Lock(), Counter[Any]()

    def note(what: object) -> None:
        with counting:
            statuses[what] += 1

    def keep_using() -> None:
        while not stopped.is_set():
            try:
                with service.client() as client:
                    for status in use(client):
                        note(status)
            except Exception as error:
                note(repr(error))

    people = [threading.Thread(target=keep_using) for _ in range(PEOPLE)]
    for person in people:
        person.start()
    try:
        yield statuses
    finally:
        stopped.set()
        for person in people:
            person.join()
    assert set(statuses) <= allowed
