"""Failed logins are counted per account and address."""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest.mock import Mock

import pytest

from app.core.config import FailureLimit
from app.core.errors import DatabaseUnavailable
from app.core.thread_pool import Overloaded
from app.mfa import queries as mfa_queries
from app.mfa import service as mfa
from app.sessions import service as sessions
from tests.support.api import ApiClient
from tests.support.challenge import give_totp
from tests.support.clock import FakeClock
from tests.support.factories import change_user, configure, make_user

WRONG = "not the password"


def fail(api, who, times, **options):
    for _ in range(times):
        api.login(who, WRONG, **options).fails(401, "auth.credentials_failed")


def test_the_eleventh_attempt_is_refused_even_with_the_right_password(api, user):
    fail(api, user, 10)
    answer = api.login(user).fails(429, "rate_limited")
    assert answer.retry_after == 300
    assert answer.set_cookies == {}


def told_of_refusals(caplog):
    return [r for r in caplog.records if r.name == "app.store.limits"]


def test_the_log_tells_which_account_is_refused_and_from_where(api, user, caplog):
    caplog.set_level(logging.WARNING)
    fail(api, user, 10)
    assert not told_of_refusals(caplog)
    api.login(user).fails(429, "rate_limited")
    [line] = told_of_refusals(caplog)
    assert (line.levelname, line.user_id) == ("WARNING", user.id)
    told = f"account {user.id} is refused from 127.0.0.1 for 300 s"
    assert line.getMessage().endswith(told)
    assert user.username not in line.getMessage()


def test_the_log_has_nothing_typed_for_an_account_that_nobody_has(api, caplog):
    caplog.set_level(logging.WARNING)
    typed = "my password typed for a name"
    fail(api, typed, 10)
    api.login(typed, WRONG).fails(429, "rate_limited")
    [line] = told_of_refusals(caplog)
    assert "an unknown account" in line.getMessage()
    assert typed not in repr(line.__dict__)


def test_the_count_drains_attempt_by_attempt(api, user, clock):
    fail(api, user, 1)
    clock.advance(seconds=100)
    fail(api, user, 9)
    assert api.login(user).fails(429, "rate_limited").retry_after == 200
    clock.advance(seconds=199)
    assert api.login(user).fails(429, "rate_limited").retry_after == 1
    clock.advance(seconds=1)
    fail(api, user, 1)
    assert api.login(user).fails(429, "rate_limited").retry_after == 100


def test_refused_attempts_do_not_prolong_the_wait(api, user, clock):
    fail(api, user, 10)
    for _ in range(5):
        clock.advance(seconds=50)
        api.login(user).fails(429, "rate_limited")
    clock.advance(seconds=50)
    api.login(user).ok()


def test_a_success_clears_the_count(api, user):
    fail(api, user, 9)
    api.login(user).ok()
    fail(api, user, 10)
    api.login(user).fails(429, "rate_limited")


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"status": "disabled"}, "auth.account_disabled"),
        ({"activated_at": None}, "auth.pending_activation"),
    ],
)
def test_a_right_password_without_a_complete_login_clears_nothing(rt, api, user, columns, code):
    """Nor is it a failure: that would keep the owner out just when the account opens."""
    change_user(rt, user, **columns)
    fail(api, user, 9)
    for _ in range(11):
        api.login(user).fails(403, code)
    fail(api, user, 1)
    api.login(user).fails(429, "rate_limited")


def test_all_spellings_of_an_identifier_share_one_count(rt, api, user):
    ada = make_user(rt, username="Ada", email="ada@example.com")
    spellings = ["Ada", "ada", " ADA ", "ada@example.com", "ADA@EXAMPLE.COM"]
    for spelling in spellings * 2:
        fail(api, spelling, 1)
    for spelling in spellings:
        api.login(spelling, ada.password).fails(429, "rate_limited")


def test_unknown_identifiers_are_counted_alike(api, user):
    for spelling in ("Nobody", "nobody", " NOBODY "):
        fail(api, spelling, 3)
    fail(api, "nobody", 1)
    answer = api.login("nobody", WRONG).fails(429, "rate_limited")
    fail(api, user, 10)
    known_answer = api.login(user, WRONG).fails(429, "rate_limited")
    assert answer.body == known_answer.body
    fail(api, "somebody else", 1)


def test_addresses_are_counted_apart(api, user):
    fail(api, user, 10, address="198.51.100.1")
    api.login(user, address="198.51.100.1").fails(429, "rate_limited")
    api.login(user, address="198.51.100.2").ok()
    api.login(user, address="198.51.100.1").fails(429, "rate_limited")


def test_an_ipv6_network_counts_as_one_address(api, user):
    fail(api, user, 5, address="2001:db8:1:2::1")
    fail(api, user, 5, address="2001:db8:1:2:ffff::9")
    api.login(user, address="2001:db8:1:2:3:4:5:6").fails(429, "rate_limited")
    api.login(user, address="2001:db8:1:3::1").ok()


@pytest.fixture
def strict(make_app):
    """A client where two failures are the limit."""
    return ApiClient(make_app(failure_limit=FailureLimit(attempts=2, window_seconds=300)))


def test_the_networks_of_one_ipv6_subscriber_have_ten_times_the_attempts_together(
    strict, rt, user, clock
):
    """A /48 has 65,536 of them, and is to be had for nothing."""
    for number in range(10):
        fail(strict, user, 2, address=f"2001:db8:1:{number:x}::1")
        clock.advance(seconds=5)
    answer = strict.login(user, address="2001:db8:1:ffff::1").fails(429, "rate_limited")
    assert answer.retry_after == 250
    strict.login(make_user(rt), address="2001:db8:1:ffff::1").ok()
    strict.login(user, address="2001:db8:2::1").ok()
    clock.advance(seconds=250)
    strict.login(user, address="2001:db8:1:ffff::1").ok()


def test_a_refused_attempt_of_a_subscriber_takes_nothing_of_its_networks(strict, user, clock):
    first, *others = [f"2001:db8:1:{number:x}::1" for number in range(20)]
    fail(strict, user, 1, address=first)
    clock.advance(seconds=100)
    for address in others:
        fail(strict, user, 1, address=address)
    for _ in range(4):
        strict.login(user, address=first).fails(429, "rate_limited")
    clock.advance(seconds=200)
    fail(strict, user, 1, address=first)


def test_a_login_clears_what_a_subscriber_has_failed_and_a_first_step_nothing(strict, rt, user):
    networks = [f"2001:db8:1:{number:x}::1" for number in range(23)]
    for address in networks[:9]:
        fail(strict, user, 2, address=address)
    strict.login(user, address=networks[20]).ok()
    for address in networks[9:18]:
        fail(strict, user, 2, address=address)
    give_totp(rt, user)
    for address in networks[20:]:
        assert strict.login(user, address=address).ok()["status"] == "mfa_required"
    fail(strict, user, 2, address=networks[20])
    strict.login(user, address=networks[21]).fails(429, "rate_limited")


def test_what_is_no_attempt_is_not_counted(strict, user):
    rt = strict.app.extensions["gatehouse"]
    for _ in range(3):
        strict.post("/auth/login", {"identifier": user.username}).fails(400, "bad_request")
        answer = strict.login(user, WRONG, headers={"Sec-Fetch-Site": "cross-site"})
        answer.fails(403, "auth.request_source_untrusted")
    configure(rt, auth_password_login_enabled=False)
    for _ in range(3):
        strict.login(user, WRONG).fails(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    fail(strict, user, 1)
    strict.login(user).ok()


def test_the_limit_holds_with_rate_limits_off(make_app):
    """GATEHOUSE_RATE_LIMITS is about requests; guesses stay limited."""
    app = make_app(rate_limits=False)
    api, user = ApiClient(app), make_user(app.extensions["gatehouse"])
    fail(api, user, 10)
    api.login(user).fails(429, "rate_limited")


def test_parallel_guesses_cannot_overtake_the_limit(app, user):
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ApiClient(app).login(user, WRONG), range(32)))
    assert sorted(answer.status for answer in answers) == [401] * 10 + [429] * 22


@pytest.mark.parametrize("secret", ["password", "current password", "code"])
def test_a_secret_that_nobody_judged_is_no_failure(rt, api, user, monkeypatch, secret):
    api.login(user).ok()
    body = {"current_password": user.password, "new_password": "quite another one"}
    ask = {
        "password": lambda: api.stranger().login(user),
        "current password": lambda: api.put("/auth/password", body),
        "code": lambda: api.post("/auth/mfa/recovery-codes/regenerate", {"code": "123456"}),
    }[secret]
    with monkeypatch.context() as busy:
        busy.setattr(rt.passwords, "check", Mock(side_effect=Overloaded))
        busy.setattr(mfa_queries, "find_totp", Mock(side_effect=Overloaded))
        for _ in range(11):
            ask().fails(503, "internal_server_error")
    api.stranger().login(user).ok()


@pytest.mark.parametrize("has_second_factor", [False, True])
def test_a_right_password_whose_login_fails_otherwise_is_no_failure(
    rt, api, user, monkeypatch, has_second_factor
):
    if has_second_factor:
        give_totp(rt, user)
    fail(api, user, 9)
    with monkeypatch.context() as lost:
        lost.setattr(sessions, "open_session", Mock(side_effect=DatabaseUnavailable))
        lost.setattr(mfa, "methods", Mock(side_effect=DatabaseUnavailable))
        for _ in range(11):
            api.login(user).fails(503, "database.error")
    fail(api, user, 1)
    api.login(user).fails(429, "rate_limited")


def test_redis_never_learns_who_is_tried(rt, api, user):
    fail(api, user, 1)
    fail(api, "secret.person@example.com", 1)
    keys = " ".join(rt.redis.client.keys("*"))
    assert "failures" in keys
    for name in (user.username, user.email, "secret", f"user:{user.id}"):
        assert name not in keys


def test_a_machine_whose_clock_is_ahead_makes_nobody_wait_for_longer_than_the_window(
    make_app, api, rt, user
):
    ahead = FakeClock()
    ahead.advance(minutes=4)
    fail(ApiClient(make_app(clock=ahead)), user, 10)
    assert api.login(user).fails(429, "rate_limited").retry_after == 300
    until = rt.limits.attempts.find_failures(f"user:{user.id}").locked_until
    assert until == rt.clock.now() + timedelta(seconds=300)
    ahead.advance(minutes=1)
    other = make_user(rt)
    fail(ApiClient(make_app(clock=ahead)), other, 10)
    api.login(other).ok()
