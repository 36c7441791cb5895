"""Runs things at the same moment, and tells who waits for whom."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import TypeVar

T = TypeVar("T")


def at_once(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run the jobs in a thread each, all let go together; return what they return, in order."""
    barrier = Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        barrier.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def count_waits(event: Event) -> Callable[[], int]:
    """Return what tells how often somebody has come to wait for the event from now on."""
    wait = event.wait
    timeouts: list[float | None] = []

    def noted(timeout: float | None = None) -> bool:
        timeouts.append(timeout)
        return wait(timeout)

    event.wait = noted  # type: ignore[method-assign]
    return lambda: len(timeouts)
