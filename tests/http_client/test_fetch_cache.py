"""What was fetched is kept for a while, and never fetched twice at once."""

import threading
from datetime import timedelta

import pytest

from app.core.http_client import FetchCache
from tests.support.clock import FakeClock


class Source:
    """Counts how often it is asked, waits for `gate` each time, fails with each of `errors`."""

    def __init__(self) -> None:
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.errors: list[BaseException] = []

    def __call__(self) -> int:
        self.asked += 1
        self.entered.set()
        assert self.gate.wait(10)
        if self.errors:
            raise self.errors.pop(0)
        return self.asked


@pytest.fixture
def cache(clock: FakeClock) -> FetchCache:
    return FetchCache(clock, timedelta(seconds=10))


@pytest.fixture
def source() -> Source:
    return Source()


def in_threads(count: int, work) -> tuple[list, list[threading.Thread]]:
    outcomes: list = []

    def run() -> None:
        try:
            outcomes.append(work())
        except BaseException as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    return outcomes, threads


def test_a_value_is_kept_until_its_life_is_over(cache, source, clock):
    assert cache.get("a", source, seconds=10) == 1
    clock.advance(seconds=9.9)
    assert cache.get("a", source, seconds=10) == 1
    clock.advance(seconds=0.1)
    assert cache.get("a", source, seconds=10) == 2


def test_keys_are_apart(cache, source):
    assert cache.get("a", source, seconds=10) == 1
    assert cache.get("b", source, seconds=10) == 2
    assert cache.get("a", source, seconds=10) == 1


def test_what_is_over_is_forgotten(cache, source, clock):
    for number in range(100):
        cache.get(number, source, seconds=10)
        clock.advance(seconds=1)
    assert len(cache._known) <= 10


def test_a_failure_is_not_kept(cache, source):
    source.errors = [ValueError("away")]
    with pytest.raises(ValueError, match="away"):
        cache.get("a", source, seconds=10)
    assert cache.get("a", source, seconds=10) == 2


def test_a_newer_value_is_fetched_once_for_all_who_saw_the_old_one(cache, source):
    old = cache.get("a", source, seconds=10)
    new = cache.get("a", source, seconds=10, other_than=old)
    assert (old, new) == (1, 2)
    assert cache.get("a", source, seconds=10, other_than=old) is new
    assert cache.get("a", source, seconds=10) is new
    assert cache.get("a", source, seconds=10, other_than=new) == 3


def test_a_failed_renewal_leaves_the_old_value(cache, source):
    old = cache.get("a", source, seconds=10)
    source.errors = [ValueError("away")]
    with pytest.raises(ValueError, match="away"):
        cache.get("a", source, seconds=10, other_than=old)
    assert cache.get("a", source, seconds=10) is old


@pytest.mark.parametrize("renews", [False, True])
def test_all_who_wait_share_one_fetch(cache, source, renews: bool):
    old = cache.get("a", source, seconds=10) if renews else None
    source.gate.clear()
    if old is not None:
        outcomes, threads = in_threads(
            20, lambda: cache.get("a", source, seconds=10, other_than=old)
        )
    else:
        outcomes, threads = in_threads(20, lambda: cache.get("a", source, seconds=10))
    assert source.entered.wait(10)
    source.gate.set()
    for thread in threads:
        thread.join(10)
    assert set(outcomes) == {2 if renews else 1}
    assert len(outcomes) == 20


def test_who_was_stopped_leaves_the_fetch_to_the_next(cache, source):
    """The time-out of one request must not fail the others."""
    source.gate.clear()
    source.errors = [SystemExit()]
    outcomes, threads = in_threads(1, lambda: cache.get("a", source, seconds=10))
    assert source.entered.wait(10)
    others, more = in_threads(3, lambda: cache.get("a", source, seconds=10))
    source.gate.set()
    for thread in threads + more:
        thread.join(10)
    assert isinstance(outcomes[0], SystemExit)
    assert others == [2, 2, 2]


def test_who_waits_for_another_fetch_does_not_wait_for_longer_than_it_may(cache, source):
    source.gate.clear()
    outcomes, threads = in_threads(1, lambda: cache.get("a", source, seconds=10))
    assert source.entered.wait(10)
    for seconds in (0.05, 0, -1):
        with pytest.raises(TimeoutError):
            cache.get("a", source, seconds=seconds)
    source.gate.set()
    threads[0].join(10)
    assert outcomes == [1]
    assert cache.get("a", source, seconds=-1) == 1
