"""Redis takes connections but does not answer: few requests find that out."""

import threading
import time

import pytest

from app.store import redis as redis_client
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, start_login, verify
from tests.support.factories import make_user
from tests.support.live import eventually

pytestmark = pytest.mark.own_application

FAIL_FAST_TIMEOUT_SECONDS = 0.25


@pytest.fixture
def redis_url(own_valkey):
    return own_valkey.url


@pytest.fixture
def redis(redis_url):
    return redis_client.connect_fail_fast(redis_url)


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


def wait_for_answers(redis, seconds):
    """Have all wait so long from now on, on new connections."""
    pool = redis.connection_pool
    pool.disconnect()
    pool.reset()
    pool.connection_kwargs["socket_timeout"] = seconds


@pytest.fixture
def hanging(signed_in, redis, own_valkey):
    """Nobody was impatient before it hangs: whatever was late then would count as its hanging."""
    wait_for_answers(redis, FAIL_FAST_TIMEOUT_SECONDS)
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
def test_it_is_used_again_once_it_answers(signed_in, redis, own_valkey, asked, clock):
    signed_in.me().ok()
    own_valkey.resume()
    wait_for_answers(redis, 10)
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


def test_who_cannot_go_on_without_it_waits_for_a_late_answer(
    make_app, own_valkey, user, monkeypatch
):
    """A login is begun and finished, though nobody waits so long to have its attempts counted."""
    monkeypatch.setattr(redis_client, "FAIL_FAST_TIMEOUT_SECONDS", FAIL_FAST_TIMEOUT_SECONDS)
    app = make_app()
    rt, client = app.extensions["gatehouse"], ApiClient(app)
    enabled = give_totp(rt, user)

    def answer_late():
        eventually(lambda: rt.redis.fail_fast.is_broken, "nobody to count")
        # Longer than two who are impatient, for whoever asks twice.
        time.sleep(3 * FAIL_FAST_TIMEOUT_SECONDS)
        own_valkey.resume()

    own_valkey.hang()
    late = threading.Thread(target=answer_late)
    late.start()
    token = start_login(client, user)
    late.join()
    assert rt.redis.fail_fast.is_broken
    verify(client, token, enabled.app.code()).ok()
