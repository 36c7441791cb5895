"""The one thread that listens goes on whatever happens: nobody would start it again."""

import pytest
from redis import Redis

from app.core.clock import Clock
from app.store import pubsub
from app.store.pubsub import Channel, Listener

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
    return texts, Listener(redis, Clock(), [Channel(NAME, texts.extend, on_gap)])


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


def test_one_that_hangs_counts_as_lost(own_valkey, wait_for):
    gaps = []
    with Redis.from_url(own_valkey.url, decode_responses=True) as redis:
        _, listener = listening(redis, lambda: gaps.append(None))
        listener.start()
        try:
            wait_for(lambda: gaps)
            own_valkey.hang()
            wait_for(lambda: len(gaps) == 2)
            own_valkey.resume()
            wait_for(lambda: len(gaps) == 3)
        finally:
            listener.close()
