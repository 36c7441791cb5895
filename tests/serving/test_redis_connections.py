"""The connections to Redis: which one a command gets."""

import os

import pytest
from redis.exceptions import ConnectionError as Lost

from app.store import redis as redis_client


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


def test_the_requests_of_a_loaded_worker_need_not_wait_for_each_other(own_valkey):
    with redis_client.connect_fail_fast(own_valkey.url) as fail_fast:
        pool = fail_fast.connection_pool
        taken = [pool.get_connection() for _ in range(500)]
        for connection in taken:
            pool.release(connection)


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
