"""An application that is closed leaves nothing open."""

import pytest
from redis import Redis

from app.store.redis import for_listening


@pytest.fixture
def server(redis_url):
    with Redis.from_url(redis_url) as client:
        yield client


def connected(server):
    return {int(client["id"]) for client in server.client_list()}


def test_no_connection_to_redis_is_left(make_app, server, wait_for):
    rt = make_app().extensions["gatehouse"]
    with for_listening(rt.redis.client) as listening:
        ids = {
            rt.redis.client.client_id(),
            rt.redis.fail_fast.client.client_id(),
            listening.client_id(),
        }
    assert len(ids) == 3
    rt.close()
    wait_for(lambda: not ids & connected(server))
