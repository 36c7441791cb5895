"""Who takes a new connection."""

import selectors
import socket
import time
from contextlib import ExitStack

import gevent
import pytest

from app.serving.connection import KERNEL_TICK_SECONDS, Connection
from app.serving.listener import MAX_PAUSES, PAUSE_SECONDS, BalancedServer
from app.serving.shares import SLACK_DIVISOR, ConnectionTable
from tests.support.live import TIMEOUT_SECONDS

BURST = 64
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_connection_tells_for_how_long_at_least_nothing_has_arrived():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as served,
    ):
        connection = Connection(served)
        for silence in (0.05, 0.2):
            began = time.monotonic()
            client.sendall(b"GET /")
            assert served.recv(5) == b"GET /"  # it has arrived
            time.sleep(silence)
            told, elapsed = connection.seconds_since_data(), time.monotonic() - began
            assert silence - 2 * KERNEL_TICK_SECONDS <= told <= elapsed


def test_a_connection_that_is_no_tcp_tells_nothing():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert Connection(ours).seconds_since_data() == 0


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
def server(busy, clock):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield BalancedServer(listener, busy, monotonic=clock.monotonic, handle=lambda *_: None)


def waits(server):
    """Count how often the server leaves a connection to others before it takes it."""
    return next(n for n in range(1000) if not server._should_defer())


def test_a_worker_alone_takes_every_connection(server):
    assert waits(server) == 0


def test_a_busier_worker_waits_for_a_less_loaded_one_but_not_for_long(server, idle):
    assert waits(server) == MAX_PAUSES


def test_a_stuck_worker_delays_one_connection_only(server, idle):
    waits(server)
    assert waits(server) == 0


def test_beside_a_stuck_worker_the_others_wait_for_each_other_only(table, server, idle):
    awake = table.take()
    awake.join()
    open_many(awake, 2)
    waits(server)
    server._share.opened()
    for _ in range(5):
        awake.record_wakeup()
        assert waits(server) == MAX_PAUSES  # for who is awake
        awake.opened()
        assert waits(server) == 0
        server._share.opened()


def test_a_pause_that_a_busy_loop_ends_late_counts_as_several(server, idle, clock):
    assert server._should_defer()
    server._look_again(clock.monotonic() - (MAX_PAUSES - 1) * PAUSE_SECONDS)
    assert server._should_defer()
    assert not server._should_defer()


def test_a_pause_is_measured_from_its_beginning(server, idle):
    server._do_read()
    while server._timer.active:
        gevent.sleep(PAUSE_SECONDS)
    assert waits(server) == MAX_PAUSES - 1  # the clock stood still


def test_time_in_which_nothing_came_is_no_patience(server, idle, clock):
    """Somebody else took the connection, and the next one comes much later."""
    assert server._should_defer()
    server._look_again(clock.monotonic() - PAUSE_SECONDS)
    clock.advance(seconds=60)
    assert waits(server) == MAX_PAUSES - 1


def test_a_stuck_worker_stays_known_while_it_holds_as_many(server, busy, idle):
    """Or whoever comes and goes beside it would be delayed each time."""
    waits(server)
    busy.closed()
    busy.closed()
    assert waits(server) == 0
    busy.opened()
    assert waits(server) == 0


def test_patience_returns_when_the_other_worker_wakes_up(server, idle):
    waits(server)
    idle.record_wakeup()
    assert waits(server) == MAX_PAUSES


def test_an_equally_loaded_worker_is_not_waited_for(server, idle):
    idle.opened()
    idle.opened()
    assert waits(server) == 0


def test_a_worker_that_stops_is_not_waited_for(server, idle):
    idle.leave()
    assert waits(server) == 0


def open_many(share, number):
    for _ in range(number):
        share.opened()


@pytest.mark.parametrize(
    ("mine", "others", "waiting", "number"),
    [
        (0, (), 1, 1),
        (0, (), 20, 20),
        (0, (0,), 20, 10),
        (0, (0,), 21, 11),
        (2, (7, 9), 6, 6),
        (5, (5,), 0, 1),
        # Its patience has ended, or it would not ask.
        (7, (2, 5), 6, 1),
        (100, (2,), 90, 13),
        (0, (4000,), 4000, 64),
    ],
)
def test_a_worker_takes_its_part_of_what_waits(table, mine, others, waiting, number):
    first, *rest = (table.take() for _ in range(1 + len(others)))
    for share, held in zip((first, *rest), (mine, *others), strict=True):
        share.join()
        open_many(share, held)
    assert first.accept_quota(waiting) == number


def burst_on(listener, table, stack):
    """Have as many clients connect as are in a burst; return the shares and looks of two workers.

    They look at their listener in turn until all are taken.
    """
    shares = [table.take(), table.take()]
    for share in shares:
        share.join()
    listener.setblocking(False)
    servers = [
        BalancedServer(
            listener,
            share,
            handle=lambda *_: None,
            spawn=lambda *call: stack.enter_context(call[-1][0]),
        )
        for share in shares
    ]
    for _ in range(BURST):
        client = stack.enter_context(socket.socket(listener.family))
        client.connect(listener.getsockname())
    looks = 0
    while sum(share.open for share in shares) < BURST:
        servers[looks % 2]._do_read()
        looks += 1
    return shares, looks


def test_a_burst_is_shared_evenly_within_a_few_looks_at_the_listener(table):
    with socket.create_server(("127.0.0.1", 0), backlog=BURST) as listener, ExitStack() as stack:
        shares, looks = burst_on(listener, table, stack)
    assert [share.open for share in shares] == [BURST / 2, BURST / 2]
    assert looks < 10


def test_a_burst_is_shared_evenly_where_nobody_tells_how_many_wait(table, tmp_path):
    with socket.socket(socket.AF_UNIX) as listener, ExitStack() as stack:
        listener.bind(f"{tmp_path}/s")
        listener.listen(BURST)
        shares, looks = burst_on(listener, table, stack)
    assert abs(shares[0].open - shares[1].open) <= BURST / SLACK_DIVISOR
    assert looks < BURST


def test_a_dead_worker_is_forgotten_and_its_slot_used_again(table, server, idle):
    idle.opened()
    table.give_back(idle)
    assert waits(server) == 0
    successor = table.take()
    assert successor.slot == idle.slot
    assert successor.open == 0


def test_who_connects_is_served_while_others_send_without_pause(live):
    """Every client sends its next request as soon as it has its answer.

    Each worker is judged by itself: the other may stand still for a while.
    """
    answered = []
    with live.client_on_each_worker():
        pass
    with ExitStack() as stack:
        ready = stack.enter_context(selectors.DefaultSelector())
        clients = [stack.enter_context(live.dial()) for _ in range(BURST)]
        for number, client in enumerate(clients):
            ready.register(client, selectors.EVENT_READ, number)
            client.sendall(HEALTH)
        waiting = set(range(BURST))
        while waiting:
            for key, _ in ready.select(TIMEOUT_SECONDS):
                data = key.fileobj.recv(65536)
                assert data
                # The body comes last, perhaps by itself.
                if data.endswith(b'{"status":"ok"}'):
                    answered.append(key.data)
                    waiting.discard(key.data)
                    key.fileobj.sendall(HEALTH)
        holders = live.workers_by_port()
        worker_of = [holders[client.getsockname()[1]] for client in clients]
    for worker in set(worker_of):
        given = [number for number in answered if worker_of[number] == worker]
        own = set(given)
        assert max(given.index(number) for number in own) < 20 * len(own)
