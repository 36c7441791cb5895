"""Redis is lost (decision A29): what needs only the database goes on."""

import pytest

from app.core import redis as redis_client
from app.core.config import Bucket
from tests.support.api import ApiClient
from tests.support.factories import configure, make_user

WRONG = "not the password"


@pytest.fixture
def redis(tmp_path):
    """A client whose server is not there."""
    return redis_client.connect(f"unix://{tmp_path}/gone.sock")


@pytest.fixture
def app(make_app, redis):
    return make_app(redis=redis, anonymous_bucket=Bucket(per_second=1, burst=1))


def fail(api, who, times, **options):
    for _ in range(times):
        api.login(who, WRONG, **options).fails(401, "auth.credentials_failed")


def test_sessions_live_on(api, user):
    api.login(user).ok()
    api.me().ok()
    api.refresh().ok()
    assert len(api.get("/auth/sessions").ok()) == 1
    body = {"current_password": user.password, "new_password": "another good one"}
    api.put("/auth/password", body).ok()
    api.delete("/auth/sessions/others").ok()
    api.post("/auth/logout").ok()
    api.me().fails(401, "auth.token_missing")


def test_set_up_works(api):
    api.sign_up_admin().ok(201)
    api.post("/auth/check").ok()


def test_request_limits_let_everything_pass(api):
    for _ in range(20):
        api.post("/auth/check").ok()


def test_failed_logins_are_limited_by_address(rt, api, user):
    fail(api, user, 4)
    fail(api, "nobody", 6)
    answer = api.login(make_user(rt)).fails(429, "rate_limited")
    assert answer.retry_after == 300


def test_a_login_of_ones_own_gives_no_further_guesses_at_others(rt, api, user):
    """Who guesses must not clear the count with an account of the same address."""
    own = make_user(rt)
    for _ in range(9):
        fail(api, user, 1)
        api.login(own).ok()
    fail(api, user, 1)
    api.login(own).fails(429, "rate_limited")
    api.login(user).fails(429, "rate_limited")


def test_logins_that_succeed_are_not_counted_at_all(api, user):
    for _ in range(20):
        api.login(user).ok()


def test_the_local_limit_counts_addresses_apart_and_networks_together(api, user):
    fail(api, user, 5, address="2001:db8:1:2::1")
    fail(api, user, 5, address="2001:db8:1:2:3::1")
    api.login(user, address="2001:db8:1:2::9").fails(429, "rate_limited")
    api.login(user, address="2001:db8:1:3::1").ok()
    api.login(user, address="198.51.100.1").ok()


def test_the_local_limit_drains(api, user, clock):
    fail(api, user, 10)
    api.login(user).fails(429, "rate_limited")
    clock.advance(seconds=299)
    api.login(user).fails(429, "rate_limited")
    clock.advance(seconds=1)
    api.login(user).ok()


def test_settings_can_still_be_changed(rt, api, user):
    configure(rt, auth_access_token_ttl_secs=60)
    assert api.login(user).ok()["expires_in"] == 60


def test_readiness_tells_what_is_missing(api):
    api.get("/health/ready").fails(503, "config.error")
    assert api.get("/health").status == 200


def test_redis_coming_back_is_noticed(make_app, clock):
    """The limits hold again a second later, with no restart."""
    app = make_app(anonymous_bucket=Bucket(per_second=0.01, burst=1))
    api = ApiClient(app)
    pool = app.extensions["gatehouse"].impatient_redis.connection_pool
    target = "path" if "path" in pool.connection_kwargs else "port"
    known = pool.connection_kwargs[target]
    pool.connection_kwargs[target] = "/nowhere.sock" if target == "path" else 1
    for _ in range(3):
        api.post("/auth/check").ok()
    pool.connection_kwargs[target] = known
    pool.reset()
    clock.advance(seconds=1)
    api.post("/auth/check").ok()
    api.post("/auth/check").fails(429, "rate_limited")
