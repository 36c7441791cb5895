"""Who runs next, under gevent."""

import socket

import gevent
import pytest
from gevent.socket import wait_read

from app.core.turns import take_turns


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_who_waits_for_input_has_its_turn_however_many_are_always_ready(ends):
    ours, theirs = ends
    heard, turns = [], 0

    def listen():
        wait_read(ours.fileno())
        heard.append(turns)

    def always():
        while True:
            take_turns()

    greenlets = [gevent.spawn(listen), *(gevent.spawn(always) for _ in range(5))]
    take_turns()
    theirs.sendall(b"!")
    while not heard:
        take_turns()
        turns += 1
        assert turns < 5
    gevent.killall(greenlets)


def test_everybody_has_as_many_turns():
    turns = [0, 0, 0]

    def count(number):
        while True:
            turns[number] += 1
            take_turns()

    greenlets = [gevent.spawn(count, number) for number in range(len(turns))]
    for _ in range(100):
        take_turns()
    gevent.killall(greenlets)
    assert min(turns) >= 99
    assert max(turns) - min(turns) <= 1
