"""What remembers that Redis does not answer."""

import logging

import pytest
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import InvalidResponse, OutOfMemoryError

from app.store.redis import (
    FAILURE_TTL_SECONDS,
    RECOVERED_AFTER_SECONDS,
    RETRY_SECONDS,
    Breaker,
    RedisAway,
    connect,
)
from tests.support.clock import FakeClock

pytestmark = pytest.mark.own_application


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


def test_an_answer_that_is_no_text_is_a_failure_of_redis(redis_url):
    with connect(redis_url) as client:
        client.set("key", b"\xff")
        with pytest.raises(InvalidResponse):
            client.get("key")
