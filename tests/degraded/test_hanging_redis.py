"""Redis takes connections but does not answer (decision A29): few requests find that out."""

import pytest
from redis import Redis

from app.core import redis as redis_client
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, start_login, verify
from tests.support.factories import make_user

# Between the patience of what can go on without an answer and of what cannot.
LATE_MS = 1200


@pytest.fixture
def redis(own_valkey):
    return redis_client.connect_impatiently(own_valkey.url)


@pytest.fixture
def app(make_app, redis):
    return make_app(redis=redis)


@pytest.fixture
def asked(redis, monkeypatch):
    """One entry per call that went as far as the connection pool."""
    calls = []
    real = redis.connection_pool.get_connection

    def get_connection(*arguments, **options):
        calls.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(redis.connection_pool, "get_connection", get_connection)
    return calls


@pytest.fixture
def signed_in(app, user):
    client = ApiClient(app)
    client.login(user).ok()
    return client


@pytest.fixture
def hanging(signed_in, own_valkey):
    own_valkey.hang()


@pytest.mark.usefixtures("hanging")
def test_one_request_a_second_waits_for_it_and_all_are_answered(signed_in, asked, clock):
    for seconds in range(1, 4):
        for _ in range(20):
            signed_in.me().ok()
        assert len(asked) == seconds
        clock.advance(seconds=0.999)
        signed_in.me().ok()
        assert len(asked) == seconds
        clock.advance(seconds=0.001)


@pytest.mark.usefixtures("hanging")
def test_what_one_request_found_out_holds_for_every_other_kind(rt, signed_in, asked):
    other = make_user(rt)
    signed_in.me().ok()
    signed_in.refresh().ok()
    signed_in.post("/auth/check").ok()
    signed_in.stranger().login(other).ok()
    signed_in.stranger().login(other, "not the password").fails(401, "auth.credentials_failed")
    assert len(asked) == 1


@pytest.mark.usefixtures("hanging")
def test_it_is_used_again_once_it_answers(signed_in, own_valkey, asked, clock):
    signed_in.me().ok()
    own_valkey.resume()
    clock.advance(seconds=1)
    for _ in range(5):
        signed_in.me().ok()
    assert len(asked) == 6


@pytest.mark.usefixtures("hanging")
def test_of_second_steps_one_asks_again(rt, signed_in, user, asked):
    give_totp(rt, user)
    signed_in.me().ok()
    for _ in range(5):
        signed_in.stranger().login(user).fails(503, "internal_server_error")
        verify(signed_in, "mfa_" + 32 * "0", "123456").fails(503, "internal_server_error")
    assert len(asked) == 2


def test_who_cannot_go_on_without_it_waits_for_a_late_answer(make_app, redis_url, user):
    """A login is begun and finished, though nobody waits so long to have its attempts counted."""
    app = make_app()
    rt, client = app.extensions["gatehouse"], ApiClient(app)
    enabled = give_totp(rt, user)
    with Redis.from_url(redis_url) as server:
        server.client_pause(LATE_MS, all=True)
    token = start_login(client, user)
    assert rt.impatient_breaker.is_broken
    verify(client, token, enabled.app.code()).ok()
