"""Who runs next, under gevent."""

import socket
from contextlib import ExitStack

import gevent
import pytest
from gevent.socket import wait_read

from app.core.event_loop import yield_to_event_loop


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def spawn():
    with ExitStack() as stack:

        def spawn(*call):
            greenlet = gevent.spawn(*call)
            stack.callback(greenlet.kill)

        yield spawn


def test_who_waits_for_input_has_its_turn_however_many_are_always_ready(ends, spawn):
    ours, theirs = ends
    heard, turns = [], 0

    def listen():
        wait_read(ours.fileno())
        heard.append(turns)

    def always():
        while True:
            yield_to_event_loop()

    spawn(listen)
    for _ in range(5):
        spawn(always)
    yield_to_event_loop()
    theirs.sendall(b"!")
    while not heard:
        yield_to_event_loop()
        turns += 1
        assert turns < 5


def test_everybody_has_as_many_turns(spawn):
    turns = [0, 0, 0]

    def count(number):
        while True:
            turns[number] += 1
            yield_to_event_loop()

    for number in range(len(turns)):
        spawn(count, number)
    for _ in range(100):
        yield_to_event_loop()
    assert min(turns) >= 99
    assert max(turns) - min(turns) <= 1
