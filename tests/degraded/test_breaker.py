"""What remembers that Redis does not answer."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import OutOfMemoryError

from app.core.breaker import (
    FAILURE_TTL_SECONDS,
    RECOVERED_AFTER_SECONDS,
    RETRY_SECONDS,
    Breaker,
    RedisAway,
)
from tests.support.clock import FakeClock
from tests.support.races import count_waits


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def broken(clock):
    breaker = Breaker(None, clock)
    fail(breaker)
    return breaker


def fail(breaker):
    def lose(_):
        raise Lost

    with pytest.raises(Lost):
        breaker.call(lose)


def another_asks(breaker):
    """Return what the breaker answers a second caller while a first one waits for Redis."""

    def ask(_):
        try:
            return breaker.call(lambda _: "asked")
        except RedisAway:
            return "refused"

    return breaker.call(ask)


def test_who_comes_right_after_a_failure_is_refused_at_once(broken):
    with pytest.raises(RedisAway):
        broken.call(lambda _: "asked")


def test_one_caller_a_second_tries_while_it_is_away(broken, clock):
    for _ in range(5):
        clock.advance(seconds=RETRY_SECONDS)
        fail(broken)
        with pytest.raises(RedisAway):
            broken.call(lambda _: "asked")
    clock.advance(seconds=RETRY_SECONDS)
    assert another_asks(broken) == "refused"
    assert broken.call(lambda _: "asked") == "asked"


@pytest.mark.parametrize("is_back", [True, False])
def test_who_comes_while_one_tries_shares_what_that_one_finds(
    broken, clock, monkeypatch, wait_for, is_back
):
    monkeypatch.setattr("app.core.breaker.PROBE_WAIT_SECONDS", 60.0)
    clock.advance(seconds=RETRY_SECONDS)
    answered = threading.Event()

    def answer_late(_):
        answered.wait(60)
        if not is_back:
            raise Lost
        return "asked"

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(broken.call, answer_late)
        wait_for(lambda: not broken._probe.is_set())
        waiting = count_waits(broken._probe)
        others = [pool.submit(broken.call, lambda _: "asked") for _ in range(3)]
        wait_for(lambda: waiting() == 3)
        answered.set()
        outcomes = [other.result() if is_back else other.exception() for other in others]
    if is_back:
        assert [first.result(), *outcomes] == ["asked"] * 4
    else:
        assert [type(error) for error in outcomes] == [RedisAway] * 3


def test_a_question_that_is_older_than_an_answer_says_nothing(broken, clock):
    """It was sent before Redis was back, and its time is up only now."""
    clock.advance(seconds=RETRY_SECONDS)

    def ask_in_vain(_):
        assert broken.call(lambda _: "asked") == "asked"
        raise Lost

    broken.call(lambda _: "asked")
    with pytest.raises(Lost):
        broken.call(ask_in_vain)
    assert not broken.is_broken


def test_who_comes_late_in_a_trial_is_refused_at_once(broken, clock, monkeypatch, wait_for):
    monkeypatch.setattr("app.core.breaker.PROBE_WAIT_SECONDS", 10.0)
    monkeypatch.setattr("app.core.breaker.RETRY_SECONDS", 100.0)
    clock.advance(seconds=RETRY_SECONDS)
    answered = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(broken.call, lambda _: answered.wait(60))
        wait_for(lambda: not broken._probe.is_set())
        clock.advance(seconds=10)
        late = pool.submit(broken.call, lambda _: "asked")
        try:
            assert isinstance(late.exception(timeout=5), RedisAway)
        finally:
            answered.set()
        assert first.result()


def test_a_failure_of_long_ago_keeps_nobody_from_asking(broken, clock):
    clock.advance(seconds=FAILURE_TTL_SECONDS)
    assert another_asks(broken) == "asked"
    assert not broken.is_broken


def test_the_log_tells_once_why_it_fails_and_when_it_answers(clock, caplog):
    caplog.set_level(logging.WARNING)
    breaker = Breaker(None, clock)

    def refuse(_):
        raise OutOfMemoryError("command not allowed")

    for _ in range(2):
        caplog.clear()
        for _ in range(10):
            with pytest.raises(OutOfMemoryError):
                breaker.call(refuse)
            clock.advance(seconds=RETRY_SECONDS)
            # A full one goes on answering who reads, which is no end.
            breaker.call(lambda _: "read")
        assert caplog.messages == ["Redis failed: OutOfMemoryError: command not allowed"]
        clock.advance(seconds=RECOVERED_AFTER_SECONDS)
        for _ in range(2):
            breaker.call(lambda _: "asked")
        assert caplog.messages[1:] == ["Redis answers again"]
