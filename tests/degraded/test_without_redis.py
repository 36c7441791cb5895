"""Redis is lost: what needs only the database goes on."""

import json

import pytest
from redis import Redis

from app.core.config import Bucket
from app.login import second_factor
from app.sessions import service
from app.sessions.models import LoginSession
from app.store import redis as redis_client
from tests.support import email_code
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, send_code, start_login, verify
from tests.support.commands import CommandLine
from tests.support.factories import audit_rows, configure, count, make_user

pytestmark = pytest.mark.own_application

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


@pytest.mark.both_databases
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


def test_who_saw_the_token_live_lost_an_honest_race(rt, api, user, monkeypatch):
    """Nobody can tell when the winner committed, and its own stamp is from before."""
    api.login(user).ok()
    late, expiry = api.twin(), service.refresh_expiry

    def overtaken(*arguments):
        monkeypatch.setattr(service, "refresh_expiry", expiry)
        api.refresh().ok()
        return expiry(*arguments)

    monkeypatch.setattr(service, "refresh_expiry", overtaken)
    assert late.refresh().fails(401, "auth.refresh_token_stale").set_cookies == {}
    api.me().ok()
    late.refresh().fails(401, "auth.refresh_token_reuse_detected")
    api.me().fails(401, "auth.token_invalid")
    assert len(audit_rows(rt, "user_refresh_token_reuse_detected")) == 1


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


def test_the_local_limit_of_an_ipv6_subscriber_is_ten_times_that_of_a_network(rt, api, user):
    for number in range(10):
        fail(api, user, 10, address=f"2001:db8:1:{number:x}::1")
    api.login(make_user(rt), address="2001:db8:1:ffff::1").fails(429, "rate_limited")
    api.login(user, address="2001:db8:2::1").ok()


def test_logins_of_one_subscriber_that_succeed_are_not_counted_at_all(api, user):
    for number in range(9):
        fail(api, user, 10, address=f"2001:db8:1:{number:x}::1")
    for _ in range(20):
        api.login(user, address="2001:db8:1:ffff::1").ok()


def test_the_local_limit_drains(api, user, clock):
    fail(api, user, 10)
    api.login(user).fails(429, "rate_limited")
    clock.advance(seconds=299)
    api.login(user).fails(429, "rate_limited")
    clock.advance(seconds=1)
    api.login(user).ok()


def test_a_second_factor_is_never_left_out(rt, api, user):
    give_totp(rt, user)
    answer = api.login(user).fails(503, "internal_server_error")
    assert answer.set_cookies == {}
    assert count(rt, LoginSession) == 0
    assert audit_rows(rt, "user_login") == []


def test_right_passwords_of_logins_that_cannot_wait_are_no_failures(rt, api, user):
    """Or a few of them would keep everybody of their network out."""
    give_totp(rt, user)
    for _ in range(12):
        api.login(user).fails(503, "internal_server_error")
    api.login(make_user(rt)).ok()


@pytest.mark.parametrize("method", ["totp", "recovery_code", "email_code"])
def test_a_waiting_login_cannot_be_finished(api, user, method):
    answer = verify(api, "mfa_" + 32 * "0", "123456", method)
    assert answer.fails(503, "internal_server_error").set_cookies == {}


@pytest.mark.both_databases
def test_no_login_code_is_sent(rt, api, user):
    configure(rt, mail_smtp_host="localhost", mail_from_address="files@files.example")
    configure(rt, auth_email_code_login_enabled=True)
    send_code(api, "mfa_" + 32 * "0").fails(503, "internal_server_error")


@pytest.mark.both_databases
def test_no_code_signs_in(rt, api, user):
    email_code.switch_on(rt)
    api.post(email_code.START, {"email": user.email}).fails(503, "internal_server_error")
    api.post(email_code.START, {"email": "no@example.com"}).fails(503, "internal_server_error")
    assert email_code.mails(rt) == []
    token = "emc_" + 32 * "0"
    email_code.finish(api, token, "12345678").fails(503, "internal_server_error")


def test_settings_can_still_be_changed(rt, api, user):
    configure(rt, auth_access_token_ttl_secs=60)
    assert api.login(user).ok()["expires_in"] == 60


def test_readiness_tells_what_is_missing(api):
    api.get("/health/ready").fails(503, "config.error")
    assert api.get("/health").status == 200


class Loss:
    """Lets clients lose their server, and find it again."""

    def __init__(self, *clients):
        self.pools = [client.connection_pool for client in clients]
        self.target = "path" if "path" in self.pools[0].connection_kwargs else "port"
        self.known = self.pools[0].connection_kwargs[self.target]

    def begin(self):
        self._point_to("/nowhere.sock" if self.target == "path" else 1)

    def end(self):
        self._point_to(self.known)

    def _point_to(self, where):
        for pool in self.pools:
            pool.connection_kwargs[self.target] = where
            pool.reset()


@pytest.mark.both_databases
def test_a_login_that_waits_is_finished_once_redis_is_back(make_app, clock):
    app = make_app()
    rt, api = app.extensions["gatehouse"], ApiClient(app)
    user = make_user(rt)
    enabled = give_totp(rt, user, clock)
    flow_token = start_login(api, user)
    loss = Loss(rt.redis.client, rt.redis.fail_fast.client)
    loss.begin()
    verify(api, flow_token, enabled.app.code()).fails(503, "internal_server_error")
    loss.end()
    clock.advance(seconds=1)
    verify(api, flow_token, enabled.app.code()).ok()


def test_a_redis_lost_in_the_middle_uses_nothing_up(make_app, clock, monkeypatch):
    """Between the look at the code and the use of the login."""
    app = make_app()
    rt, api = app.extensions["gatehouse"], ApiClient(app)
    user = make_user(rt)
    enabled = give_totp(rt, user, clock)
    flow_token = start_login(api, user)
    loss, real = Loss(rt.redis.client, rt.redis.fail_fast.client), second_factor.mfa.check_totp

    def lose_redis(*arguments):
        loss.begin()
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(second_factor.mfa, "check_totp", lose_redis)
        verify(api, flow_token, enabled.app.code()).fails(503, "internal_server_error")
    loss.end()
    clock.advance(seconds=1)
    verify(api, flow_token, enabled.app.code()).ok()


def test_a_login_of_ones_own_while_redis_is_back_forgets_no_guess_at_others(make_app, clock):
    """Or guesses would be without end where Redis comes and goes."""
    app = make_app()
    rt, api = app.extensions["gatehouse"], ApiClient(app)
    user, own = make_user(rt), make_user(rt)
    loss = Loss(rt.redis.client, rt.redis.fail_fast.client)
    loss.begin()
    fail(api, user, 10)
    loss.end()
    clock.advance(seconds=1)
    for _ in range(3):
        api.login(own).ok()
    enabled = give_totp(rt, own, clock)
    for _ in range(3):
        verify(api, start_login(api, own), enabled.app.wait()).ok()
    loss.begin()
    api.login(user, WRONG).fails(429, "rate_limited")


@pytest.fixture
def unwritable(own_valkey):
    """Return how to have a Valkey answer and take nothing."""

    def spoil(how):
        with Redis.from_url(own_valkey.url) as client:
            if how == "full":
                client.config_set("maxmemory", "1")
                client.config_set("maxmemory-policy", "noeviction")
            else:
                client.replicaof("127.0.0.1", "1")

    return spoil


@pytest.mark.parametrize(
    ("how", "reason", "mend"),
    [
        ("full", "command not allowed when used memory", "maxmemory"),
        ("replica", "You can't write against a read only replica", "promote"),
    ],
)
def test_one_that_takes_nothing_is_not_ready(make_app, own_valkey, unwritable, how, reason, mend):
    app = make_app(redis=redis_client.connect(own_valkey.url))
    api = ApiClient(app)
    api.get("/health/ready").ok()
    assert 'dependency_up{dependency="redis"} 1.0' in api.get("/health/metrics").text
    unwritable(how)
    api.get("/health/ready").fails(503, "config.error")
    text = api.get("/health/metrics").text
    assert 'dependency_up{dependency="redis"} 0.0' in text
    assert 'dependency_up{dependency="database"} 1.0' in text
    checks = json.loads(CommandLine(app)("doctor", "--json").stdout)["checks"]
    [found] = [check for check in checks if check["check"] == "redis"]
    assert found["level"] == "fail"
    assert reason in found["message"]
    assert mend in found["message"]


def test_what_is_written_to_see_is_gone_a_moment_later(make_app, monkeypatch):
    assert redis_client.WRITE_PROBE_TTL_MS == 1000
    # A busy machine may look later than that.
    monkeypatch.setattr(redis_client, "WRITE_PROBE_TTL_MS", 60_000)
    app = make_app()
    ApiClient(app).get("/health/ready").ok()
    client = app.extensions["gatehouse"].redis.client
    assert 0 < client.pttl(redis_client.WRITE_PROBE_KEY) <= 60_000


def test_redis_coming_back_is_noticed(make_app, clock):
    """The limits hold again a second later, with no restart."""
    app = make_app(anonymous_bucket=Bucket(per_second=0.01, burst=1))
    api = ApiClient(app)
    loss = Loss(app.extensions["gatehouse"].redis.fail_fast.client)
    loss.begin()
    for _ in range(3):
        api.post("/auth/check").ok()
    loss.end()
    clock.advance(seconds=1)
    api.post("/auth/check").ok()
    api.post("/auth/check").fails(429, "rate_limited")


def test_the_metrics_are_told_and_tell_it(api):
    text = api.get("/health/metrics").text
    assert 'dependency_up{dependency="database"} 1.0' in text
    assert 'dependency_up{dependency="redis"} 0.0' in text
    assert 'dependency_response_seconds{dependency="redis"}' not in text
