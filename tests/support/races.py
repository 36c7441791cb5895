"""Runs jobs concurrently."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
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
