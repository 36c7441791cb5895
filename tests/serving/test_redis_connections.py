"""The connections to Redis: which one a command gets."""

import os
import threading
import time

import pytest
from redis.exceptions import ConnectionError as Lost

from app.core import redis as redis_client
from tests.support import servers


@pytest.fixture
def server():
    """A Valkey of its own, which can be restarted."""
    with servers.short_folder() as folder, servers.PrivateValkey(folder) as valkey:
        yield valkey


@pytest.fixture
def redis(server):
    client = redis_client.connect(server.url)
    yield client
    client.close()


def test_commands_in_turn_share_one_connection(redis):
    assert len({redis.client_id() for _ in range(20)}) == 1


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


def test_who_finds_all_in_use_for_too_long_is_refused(server):
    pool = redis_client.connect_impatiently(server.url).connection_pool
    taken = [pool.get_connection() for _ in range(redis_client.CONNECTIONS)]
    with pytest.raises(Lost, match="No connection available"):
        pool.get_connection()
    assert len(taken) == redis_client.CONNECTIONS


def test_one_that_died_while_nobody_used_it_costs_no_command(server):
    impatient = redis_client.connect_impatiently(server.url)
    assert impatient.ping()
    server.kill()
    server.start()
    time.sleep(redis_client.TRUSTED_SECONDS)
    assert impatient.ping()


def test_one_that_died_a_moment_ago_is_made_anew(redis, server):
    assert redis.ping()
    server.kill()
    server.start()
    assert redis.ping()


def test_a_forked_process_has_its_own(redis):
    ours = redis.client_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(redis.client_id()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    theirs = int(os.read(reading, 20))
    os.close(reading)
    assert theirs != ours
    assert redis.client_id() == ours
