"""Who takes a new connection."""

import socket
import time

import pytest

from app.serving.connection import KERNEL_TICK_SECONDS, Connection
from app.serving.listener import PAUSES, EvenServer
from app.serving.shares import ConnectionTable


def test_a_connection_tells_for_how_long_at_least_nothing_has_arrived():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as served,
    ):
        connection = Connection(served)
        for silence in (0.05, 0.2):
            client.sendall(b"GET /")
            began = time.monotonic()
            time.sleep(silence)
            told, elapsed = connection.silent_seconds(), time.monotonic() - began
            assert silence - 2 * KERNEL_TICK_SECONDS <= told <= elapsed


def test_a_connection_that_is_no_tcp_tells_nothing():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert Connection(ours).silent_seconds() == 0


@pytest.fixture
def table():
    return ConnectionTable()


@pytest.fixture
def busy(table):
    """Return the share of a worker with two connections."""
    share = table.take()
    share.join()
    share.opened()
    share.opened()
    return share


@pytest.fixture
def idle(table):
    share = table.take()
    share.join()
    return share


@pytest.fixture
def server(busy):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield EvenServer(listener, busy, handle=lambda *_: None)


def waits(server):
    """Count how often the server leaves a connection to others before it takes it."""
    return next(n for n in range(1000) if not server._leaves_it_to_others())


def test_a_worker_alone_takes_every_connection(server):
    assert waits(server) == 0


def test_a_busier_worker_waits_for_a_less_loaded_one_but_not_for_long(server, idle):
    assert waits(server) == PAUSES


def test_a_stuck_worker_delays_one_connection_only(server, idle):
    waits(server)
    assert waits(server) == 0


def test_patience_returns_when_the_other_worker_wakes_up(server, idle):
    waits(server)
    idle.woke()
    assert waits(server) == PAUSES


def test_an_equally_loaded_worker_is_not_waited_for(server, idle):
    idle.opened()
    idle.opened()
    assert waits(server) == 0


def test_a_worker_that_stops_is_not_waited_for(server, idle):
    idle.leave()
    assert waits(server) == 0


def test_a_dead_worker_is_forgotten_and_its_slot_used_again(table, server, idle):
    idle.opened()
    table.give_back(idle)
    assert waits(server) == 0
    successor = table.take()
    assert successor.slot == idle.slot
    assert successor.open == 0
