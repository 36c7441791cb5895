"""One subscription of a process: what it hands on, and when it says that something was missed."""

import threading

import pytest
from redis import Redis

from app.core.clock import Clock
from app.store.pubsub import Channel, Listener
from app.store.redis import connect

NAMES = ("test:one", "test:two")


class Heard:
    """Notes everything, gaps as None, and fails when told to."""

    def __init__(self):
        self.calls = []
        self.failures = []
        self.pause = threading.Event()
        self.pause.set()

    def take(self, texts):
        self.pause.wait(10)
        if self.failures:
            raise self.failures.pop()
        self.calls.append(list(texts))

    def note_gap(self):
        self.calls.append(None)

    @property
    def texts(self):
        return [text for call in self.calls if call is not None for text in call]

    @property
    def gaps(self):
        return self.calls.count(None)


@pytest.fixture
def redis(redis_url):
    with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest.fixture
def heard(redis, wait_for):
    """What was heard on each of two channels, over one connection."""
    found = {name: Heard() for name in NAMES}
    channels = [Channel(name, one.take, one.note_gap) for name, one in found.items()]
    listener = Listener(redis, Clock(), channels)
    listener.start()
    wait_for(lambda: all(one.gaps for one in found.values()))
    yield found
    for one in found.values():
        one.pause.set()
    listener.close()


def test_a_stop_ends_the_subscription(redis, wait_for):
    one = Heard()
    listener = Listener(redis, Clock(), [Channel(NAMES[0], one.take, one.note_gap)])
    listener.start()
    wait_for(lambda: one.gaps)
    listener.close()
    assert redis.pubsub_numsub(NAMES[0]) == [(NAMES[0], 0)]


def test_the_first_subscription_is_the_end_of_a_gap(heard):
    assert [one.calls for one in heard.values()] == [[None], [None]]


def test_each_channel_gets_its_own_in_order(redis, heard, wait_for):
    for number in range(300):
        redis.publish(NAMES[number % 2], str(number))
    one, two = heard.values()
    wait_for(lambda: len(one.texts) == len(two.texts) == 150)
    assert one.texts == [str(number) for number in range(0, 300, 2)]
    assert two.texts == [str(number) for number in range(1, 300, 2)]


def test_what_piles_up_is_handed_on_together_within_bounds(redis, heard, wait_for):
    one, _ = heard.values()
    one.pause.clear()
    redis.publish(NAMES[0], "first")
    for number in range(1000):
        redis.publish(NAMES[0], str(number))
    one.pause.set()
    wait_for(lambda: len(one.texts) == 1001)
    sizes = [len(call) for call in one.calls if call]
    assert 3 < len(sizes) < 50
    assert max(sizes) <= 256


@pytest.mark.parametrize("size", [3_000, 400_000])
def test_a_message_that_comes_in_pieces_is_no_gap(redis, heard, wait_for, size):
    """A client that gave up on a part of one would reconnect, and lose what follows."""
    one, _ = heard.values()
    with redis.pipeline(transaction=False) as pipeline:
        for number in range(60):
            pipeline.publish(NAMES[0], f"{number} ".ljust(size, "x"))
        pipeline.execute()
    wait_for(lambda: len(one.texts) == 60)
    assert [int(text.partition(" ")[0]) for text in one.texts] == list(range(60))
    assert one.gaps == 1


def test_bytes_that_are_no_text_do_not_end_it(redis, heard, wait_for):
    one, _ = heard.values()
    redis.publish(NAMES[0], b"\xff\xfe")
    redis.publish(NAMES[0], "fine")
    wait_for(lambda: len(one.texts) == 2)
    assert one.texts == ["\N{REPLACEMENT CHARACTER}" * 2, "fine"]


def test_a_failure_in_one_call_does_not_end_it(redis, heard, wait_for):
    one, _ = heard.values()
    one.failures.append(ZeroDivisionError())
    redis.publish(NAMES[0], "lost")
    wait_for(lambda: not one.failures)
    redis.publish(NAMES[0], "fine")
    wait_for(lambda: one.texts)
    assert one.texts == ["fine"]


def test_a_connection_that_breaks_is_a_gap_on_every_channel(redis, heard, wait_for):
    one, two = heard.values()
    redis.client_kill_filter(_type="pubsub")
    wait_for(lambda: one.gaps > 1 and two.gaps > 1)
    wait_for(lambda: redis.publish(NAMES[0], "again") and one.texts)
    assert set(one.texts) == {"again"}


def test_so_it_is_for_the_services_own_client(redis, redis_url, wait_for):
    """It would otherwise ask again by itself, and nobody would learn what was missed."""
    one = Heard()
    channels = [Channel(NAMES[0], one.take, one.note_gap)]
    listener = Listener(connect(redis_url), Clock(), channels)
    listener.start()
    try:
        wait_for(lambda: one.gaps == 1)
        redis.client_kill_filter(_type="pubsub")
        wait_for(lambda: one.gaps == 3)  # lost, there again
    finally:
        listener.close()


def test_an_idle_subscription_is_asked_and_kept(redis, heard, wait_for):
    """Questions whether it still lives are no messages, and no gaps."""
    threading.Event().wait(5)
    redis.publish(NAMES[0], "still here")
    one, two = heard.values()
    wait_for(lambda: one.texts)
    assert (one.texts, one.gaps, two.gaps) == (["still here"], 1, 1)
