"""Runs jobs concurrently, and counts waits for events."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import TypeVar

T = TypeVar("T")


def run_concurrently(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run each job in a thread of its own, all released together; return the results in order."""
    barrier = Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        barrier.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def count_waits(event: Event) -> Callable[[], int]:
    """Return a function that counts the calls of `event.wait` from now on."""
    wait = event.wait
    timeouts: list[float | None] = []

    def noted(timeout: float | None = None) -> bool:
        timeouts.append(timeout)
        return wait(timeout)

    event.wait = noted  # type: ignore[method-assign]
    return lambda: len(timeouts)
