"""The connections to Redis: which one a command gets."""

import os
import threading

import pytest
from redis.exceptions import ConnectionError as Lost

from app.core import redis as redis_client
from app.core.readable import is_readable
from tests.support.live import eventually


@pytest.fixture
def few(monkeypatch):
    """Few enough to have them all in use."""
    monkeypatch.setattr(redis_client, "CONNECTIONS", 16)


@pytest.fixture
def redis(own_valkey, few):
    client = redis_client.connect(own_valkey.url)
    yield client
    client.close()


def test_commands_in_turn_share_one_connection(redis):
    assert len({redis.client_id() for _ in range(20)}) == 1


@pytest.mark.parametrize("is_idle", [True, False])
def test_one_that_the_server_wants_replaced_is_not_used_again(redis, is_idle):
    pool, first = redis.connection_pool, redis.client_id()
    connection = pool.get_connection()
    if is_idle:
        pool.release(connection)
    connection.mark_for_reconnect()
    if not is_idle:
        pool.release(connection)
    assert redis.client_id() != first


def test_no_two_use_one_at_once(redis):
    pool = redis.connection_pool
    taken = [pool.get_connection() for _ in range(redis_client.CONNECTIONS)]
    assert len(set(map(id, taken))) == redis_client.CONNECTIONS
    for connection in taken:
        pool.release(connection)
    again = [pool.get_connection() for _ in range(redis_client.CONNECTIONS)]
    assert set(map(id, again)) == set(map(id, taken))


def test_who_finds_all_in_use_gets_the_first_that_is_given_back(redis):
    pool = redis.connection_pool
    taken = [pool.get_connection() for _ in range(redis_client.CONNECTIONS)]
    got = []
    waiting = threading.Thread(target=lambda: got.append(pool.get_connection()))
    waiting.start()
    pool.release(taken[7])
    waiting.join()
    assert got == [taken[7]]


def test_all_who_wait_get_one_that_is_given_back(redis):
    pool = redis.connection_pool
    taken = [pool.get_connection() for _ in range(redis_client.CONNECTIONS)]
    got = []
    waiting = [threading.Thread(target=lambda: got.append(pool.get_connection())) for _ in "abc"]
    for thread in waiting:
        thread.start()
    eventually(lambda: len(pool._asking) == len(waiting), "all of them wait", 10)
    for connection in taken[:3]:
        pool.release(connection)
    for thread in waiting:
        thread.join()
    assert set(got) == set(taken[:3])


def test_the_requests_of_a_loaded_worker_need_not_wait_for_each_other(own_valkey):
    with redis_client.connect_fail_fast(own_valkey.url) as fail_fast:
        pool = fail_fast.connection_pool
        taken = [pool.get_connection() for _ in range(500)]
        for connection in taken:
            pool.release(connection)


def test_what_a_burst_left_over_is_closed_after_a_while(redis, monkeypatch):
    pool = redis.connection_pool
    for connection in [pool.get_connection() for _ in range(10)]:
        pool.release(connection)
    assert len(redis.client_list()) == 10
    later = redis_client.perf_counter() + redis_client.IDLE_SECONDS
    monkeypatch.setattr(redis_client, "perf_counter", lambda: later)
    kept = redis.client_id()
    eventually(lambda: len(redis.client_list()) == 1, "the server knows one", 10)
    assert redis.client_id() == kept
    pool.release(pool.get_connection())
    for connection in [pool.get_connection() for _ in range(redis_client.CONNECTIONS)]:
        pool.release(connection)  # those closed are made again
    assert len(redis.client_list()) == redis_client.CONNECTIONS


def test_so_is_what_was_given_back_while_another_was_being_made(redis, monkeypatch):
    pool = redis.connection_pool
    first = pool.get_connection()
    make, may_go_on = pool.make_connection, threading.Event()
    monkeypatch.setattr(pool, "make_connection", lambda: may_go_on.wait(10) and make())
    making = threading.Thread(target=lambda: pool.release(pool.get_connection()))
    making.start()
    eventually(lambda: pool._asking, "somebody who asks", 10)
    pool.release(first)
    may_go_on.set()
    making.join()
    assert len(redis.client_list()) == 2
    later = redis_client.perf_counter() + redis_client.IDLE_SECONDS
    monkeypatch.setattr(redis_client, "perf_counter", lambda: later)
    eventually(lambda: len(redis.client_list()) == 1, "the server knows one", 10)


def test_who_finds_all_in_use_for_too_long_is_refused(own_valkey, few, monkeypatch):
    monkeypatch.setattr(redis_client, "FAIL_FAST_TIMEOUT_SECONDS", 0.25)
    pool = redis_client.connect_fail_fast(own_valkey.url).connection_pool
    taken = [pool.get_connection() for _ in range(redis_client.CONNECTIONS)]
    with pytest.raises(Lost, match="No connection available"):
        pool.get_connection()
    assert len(taken) == redis_client.CONNECTIONS


def test_one_that_died_costs_nobody_a_command(own_valkey):
    fail_fast = redis_client.connect_fail_fast(own_valkey.url)
    assert fail_fast.ping()
    own_valkey.kill()
    own_valkey.start()
    assert fail_fast.ping()


def test_an_answer_that_nobody_waited_for_reaches_nobody_else(redis):
    pool = redis.connection_pool
    connection = pool.get_connection()
    connection.send_command("ECHO", "somebody's")
    eventually(lambda: is_readable(connection._get_socket().fileno()), "the answer", 10)
    pool.release(connection)
    assert redis.echo("mine") == "mine"


def test_one_that_was_lost_is_not_handed_out_as_it_is(redis):
    pool = redis.connection_pool
    connection = pool.get_connection()
    connection.disconnect()
    pool.release(connection)
    assert pool.get_connection()._get_socket() is not None


def test_a_forked_process_has_its_own(redis):
    ours = redis.client_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(redis.client_id()).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    theirs = int(os.read(reading, 20))
    os.close(reading)
    assert theirs != ours
    assert redis.client_id() == ours
