"""Request rate limits per address."""

import pytest

from app.core.config import Bucket, Config
from tests.support.api import ApiClient
from tests.support.clock import FakeClock
from tests.support.factories import make_user


@pytest.fixture
def limited(make_app):
    # So slow that the keys, which Redis ages by a clock of its own, outlive a test that stalls.
    return make_app(
        anonymous_bucket=Bucket(per_second=0.02, burst=4),
        session_bucket=Bucket(per_second=0.05, burst=8),
    )


@pytest.fixture
def client(limited):
    return ApiClient(limited)


@pytest.fixture
def member(limited, client):
    """A client that is signed in; the bucket of its login has filled up again."""
    user = make_user(limited.extensions["gatehouse"])
    client.login(user, address="192.0.2.99").ok()
    return client


def check(client, **options):
    return client.post("/auth/check", **options)


def spend(call, times):
    for _ in range(times):
        assert call().status != 429


def test_the_documented_values_are_the_defaults():
    assert Config.anonymous_bucket == Bucket(per_second=20, burst=100)
    assert Config.session_bucket == Bucket(per_second=50, burst=300)
    assert Config.rate_limits is True


def test_the_burst_is_answered_and_the_next_refused(client):
    spend(lambda: check(client), 4)
    answer = check(client).fails(429, "rate_limited")
    assert answer.retry_after == 50
    assert "50" in answer.json["msg"]


def test_the_bucket_refills_token_by_token(client, clock):
    spend(lambda: check(client), 4)
    clock.advance(seconds=49.9)
    check(client).fails(429, "rate_limited")
    clock.advance(seconds=0.1)
    spend(lambda: check(client), 1)
    check(client).fails(429, "rate_limited")
    clock.advance(seconds=100)
    spend(lambda: check(client), 2)
    check(client).fails(429, "rate_limited")


def test_the_bucket_never_holds_more_than_its_burst(client, clock):
    check(client).ok()
    clock.advance(days=1)
    spend(lambda: check(client), 4)
    check(client).fails(429, "rate_limited")


def test_refused_requests_cost_nothing(client, clock):
    spend(lambda: check(client), 4)
    for _ in range(20):
        check(client).fails(429, "rate_limited")
    clock.advance(seconds=50)
    spend(lambda: check(client), 1)


def test_retry_after_is_long_enough(make_app, clock):
    client = ApiClient(make_app(anonymous_bucket=Bucket(per_second=0.1, burst=1)))
    check(client).ok()
    clock.advance(seconds=2.5)
    wait = check(client).fails(429, "rate_limited").retry_after
    assert wait == 8
    clock.advance(seconds=wait)
    check(client).ok()


def test_all_anonymous_routes_share_one_bucket(client):
    spend(lambda: check(client), 1)
    spend(lambda: client.login("nobody", "password"), 1)
    spend(lambda: client.refresh(), 1)
    spend(lambda: client.post("/auth/logout"), 1)
    for answer in (
        check(client),
        client.login("nobody", "password"),
        client.refresh(),
        client.post("/auth/logout"),
        client.sign_up_admin(),
        client.get("/public/frontend-config"),
    ):
        answer.fails(429, "rate_limited")


def test_session_routes_have_a_bucket_of_their_own(member):
    spend(lambda: check(member), 4)
    spend(member.me, 4)
    spend(lambda: member.get("/auth/sessions"), 4)
    member.me().fails(429, "rate_limited")
    member.delete("/auth/sessions/others").fails(429, "rate_limited")


def test_the_limit_comes_before_the_login(client):
    spend(client.me, 8)
    client.me().fails(429, "rate_limited")


def test_the_limit_comes_before_the_body(client):
    spend(lambda: client.post("/auth/login", b"{"), 4)
    client.post("/auth/login", b"{").fails(429, "rate_limited")


def test_a_refusal_by_rate_changes_nothing(member):
    before = member.cookies
    spend(lambda: check(member), 4)
    assert member.post("/auth/logout").fails(429, "rate_limited").set_cookies == {}
    assert member.cookies == before
    member.me().ok()


def test_addresses_have_buckets_of_their_own(client):
    spend(lambda: check(client, address="198.51.100.1"), 4)
    check(client, address="198.51.100.1").fails(429, "rate_limited")
    spend(lambda: check(client, address="198.51.100.2"), 4)


def test_an_ipv6_host_roams_in_its_64(client):
    for number in range(4):
        check(client, address=f"2001:db8:1:2:{number}::1").ok()
    check(client, address="2001:db8:1:2:ffff:ffff:ffff:ffff").fails(429, "rate_limited")
    check(client, address="2001:db8:1:3::1").ok()


def network(number):
    """Return an address in one of the /64 networks of one /48."""
    return f"2001:db8:1:{number:x}::1"


def test_the_networks_of_one_ipv6_subscriber_have_ten_buckets_together(client, clock):
    """A /48 has 65,536 of them, and is to be had for nothing."""
    for number in range(20):
        spend(lambda number=number: check(client, address=network(number)), 2)
    assert check(client, address=network(20)).fails(429, "rate_limited").retry_after == 5
    check(client, address="2001:db8:2::1").ok()
    clock.advance(seconds=5)
    check(client, address=network(20)).ok()
    check(client, address=network(21)).fails(429, "rate_limited")


def test_a_token_is_taken_of_network_and_subscriber_or_of_neither(client, clock):
    spend(lambda: check(client, address=network(0)), 3)
    for number in range(1, 10):
        spend(lambda number=number: check(client, address=network(number)), 4)
        check(client, address=network(number)).fails(429, "rate_limited")
    check(client, address=network(10)).ok()
    for _ in range(3):
        check(client, address=network(0)).fails(429, "rate_limited")
    clock.advance(seconds=5)
    check(client, address=network(0)).ok()


def test_an_ipv4_mapped_address_is_the_same_address(client):
    spend(lambda: check(client, address="198.51.100.1"), 2)
    spend(lambda: check(client, address="::ffff:198.51.100.1"), 2)
    check(client, address="198.51.100.1").fails(429, "rate_limited")
    check(client, address="::ffff:198.51.100.2").ok()


def test_switched_off_nothing_is_counted(make_app, rt):
    client = ApiClient(make_app(rate_limits=False, anonymous_bucket=Bucket(1, 1)))
    for _ in range(5):
        check(client).ok()
    assert [key for key in rt.redis.client.keys("*") if "rate" in key] == []


def test_health_is_never_limited(client):
    for _ in range(20):
        assert client.get("/health").status == 200


def test_buckets_are_shared_by_all_applications_on_one_redis(make_app):
    small = {"anonymous_bucket": Bucket(per_second=0.02, burst=4)}
    first, second = ApiClient(make_app(**small)), ApiClient(make_app(**small))
    spend(lambda: check(first), 2)
    spend(lambda: check(second), 2)
    check(first).fails(429, "rate_limited")


def test_buckets_leave_redis_by_themselves(limited, client):
    check(client).ok()
    redis = limited.extensions["gatehouse"].redis.client
    keys = redis.keys("gatehouse:rate:*")
    assert keys
    assert all(0 < redis.pttl(key) <= 50_000 for key in keys)


def with_clock_ahead(make_app, **ahead):
    """Return clients of two machines on one Redis: one whose clock is right, one's is ahead."""
    fast = FakeClock()
    fast.advance(**ahead)
    small = {"anonymous_bucket": Bucket(per_second=0.02, burst=4)}
    return ApiClient(make_app(**small)), ApiClient(make_app(clock=fast, **small))


def test_a_machine_whose_clock_is_ahead_keeps_nobody_from_the_others(make_app):
    right, fast = with_clock_ahead(make_app, hours=1)
    for _ in range(3):
        check(fast).ok()
        check(right).ok()
    spend(lambda: check(right), 3)
    assert check(right).fails(429, "rate_limited").retry_after == 50


def test_clocks_that_are_a_little_apart_share_a_bucket(make_app):
    right, fast = with_clock_ahead(make_app, seconds=4)
    spend(lambda: check(fast), 4)
    assert check(right).fails(429, "rate_limited").retry_after == 54
