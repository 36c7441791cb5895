"""The one thread that listens goes on whatever happens: nobody would start it again."""

from unittest.mock import MagicMock, Mock

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from app.core import pubsub
from app.core.clock import SystemClock
from app.core.pubsub import Channel, Listener

NAME = "test:survives"


@pytest.fixture
def redis(redis_url):
    with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


def fails_once(real):
    """Return a function that raises what nobody expects at its second call."""
    calls = []

    def wrapper(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise AttributeError("a client library has bugs, too")
        return real(*arguments)

    return wrapper


def listening(redis, on_gap):
    texts = []
    return texts, Listener(redis, SystemClock(), [Channel(NAME, texts.extend, on_gap)])


def test_a_failure_nobody_expects_is_a_gap(redis, wait_for, monkeypatch):
    monkeypatch.setattr(pubsub, "_arrived", fails_once(pubsub._arrived))
    gaps = []
    texts, listener = listening(redis, lambda: gaps.append(None))
    listener.start()
    try:
        wait_for(lambda: gaps)
        redis.publish(NAME, "missed")
        wait_for(lambda: len(gaps) == 3)  # there, lost, there again
        redis.publish(NAME, "one")
        wait_for(lambda: texts == ["one"])
    finally:
        listener.close()


def test_a_failure_while_a_loss_is_told_changes_nothing(redis, wait_for, monkeypatch):
    monkeypatch.setattr(pubsub, "_arrived", fails_once(pubsub._arrived))
    gaps = []

    def note():
        gaps.append(None)
        if len(gaps) == 2:
            raise ZeroDivisionError

    texts, listener = listening(redis, note)
    listener.start()
    try:
        wait_for(lambda: gaps)
        redis.publish(NAME, "missed")
        wait_for(lambda: len(gaps) == 3)
        redis.publish(NAME, "one")
        wait_for(lambda: texts == ["one"])
    finally:
        listener.close()


class Questions:
    """A subscription on which nothing arrives; `answered_at` tells after how many waits it does."""

    def __init__(self, answered_at=None):
        self.health_check_response_counter = self.waits = 0
        self.answered_at = answered_at

    def has_arrived(self, _):
        self.waits += 1
        if self.waits == self.answered_at:
            self.health_check_response_counter = 0
        return False

    def check_health(self):
        self.health_check_response_counter += 1

    def subscribe(self, *_):
        pass

    @property
    def connection(self):
        return Mock(**{"can_read.return_value": False})


@pytest.mark.parametrize("answered_at", [None, 4])
def test_the_last_question_has_time_to_be_answered(redis, answered_at):
    _, listener = listening(redis, lambda: None)
    asked = Questions(answered_at)
    listener._has_arrived = asked.has_arrived
    server = MagicMock(**{"pubsub.return_value.__enter__.return_value": asked})
    with pytest.raises(RedisConnectionError, match="Redis hangs"):
        listener._listen(server)
    assert asked.waits == (4 if answered_at is None else 7)
