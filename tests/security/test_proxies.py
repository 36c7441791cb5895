"""Where a request comes from."""

import ipaddress

import pytest

from tests.support.api import ApiClient
from tests.support.factories import make_user

PROXY = "10.0.0.1"
EDGE = "10.0.0.2"
CLIENT = "198.51.100.7"


@pytest.fixture
def behind(make_app):
    """A client whose requests pass a proxy in 10.0.0.0/24 or ::ffff:0:0, which is trusted."""
    networks = ("10.0.0.0/24", "2001:db8:ffff::/48")
    app = make_app(trusted_proxies=tuple(map(ipaddress.ip_network, networks)))
    return ApiClient(app)


def seen_address(client, headers, peer=PROXY):
    user = make_user(client.app.extensions["gatehouse"])
    client.login(user, headers=headers, address=peer).ok()
    [session] = client.get("/auth/sessions").ok()
    return session["ip_address"]


@pytest.mark.parametrize(
    ("forwarded", "seen"),
    [
        (CLIENT, CLIENT),
        (f" {CLIENT} ", CLIENT),
        (f"{CLIENT}:54321", CLIENT),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("2001:DB8:0:0::7", "2001:db8::7"),
        (f"{CLIENT}, {EDGE}", CLIENT),
        (f"1.1.1.1, {CLIENT}, {EDGE}", CLIENT),
        (f"{CLIENT}, 2.2.2.2", "2.2.2.2"),
        (f"{EDGE}, 10.0.0.3", PROXY),
        ("", PROXY),
        ("nonsense", PROXY),
        (f"{CLIENT}, nonsense", PROXY),
        (f"nonsense, {CLIENT}", CLIENT),
        ("unknown", PROXY),
        (f"{CLIENT},", PROXY),
        ("1.2.3.4.5", PROXY),
    ],
)
def test_the_right_most_untrusted_hop_is_the_client(behind, forwarded, seen):
    assert seen_address(behind, {"X-Forwarded-For": forwarded}) == seen


@pytest.mark.parametrize(
    ("forwarded", "seen"),
    [
        (f"for={CLIENT}", CLIENT),
        (f"For={CLIENT};proto=https;by=10.0.0.1", CLIENT),
        ('for="[2001:db8::7]:443"', "2001:db8::7"),
        (f"for=1.1.1.1, for={CLIENT}, for={EDGE}", CLIENT),
        ("for=_hidden", PROXY),
        ("for=unknown", PROXY),
        ("proto=https", PROXY),
        (";;,,", PROXY),
    ],
)
def test_the_standard_header_is_understood(behind, forwarded, seen):
    assert seen_address(behind, {"Forwarded": forwarded}) == seen


def test_a_proxy_on_ipv6_is_recognised(behind):
    headers = {"X-Forwarded-For": CLIENT}
    assert seen_address(behind, headers, peer="2001:db8:ffff::1") == CLIENT


def test_a_proxy_on_a_dual_stack_socket_is_recognised(behind):
    headers = {"X-Forwarded-For": CLIENT}
    assert seen_address(behind, headers, peer=f"::ffff:{PROXY}") == CLIENT
    assert seen_address(behind, headers, peer="::ffff:10.0.1.1") == "10.0.1.1"


def test_ipv4_mapped_loopback_is_a_trusted_loopback(make_app):
    app = make_app(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),))
    headers = {"X-Forwarded-For": CLIENT}
    assert seen_address(ApiClient(app), headers, peer="::ffff:127.0.0.1") == CLIENT
    assert seen_address(ApiClient(app), headers, peer="::ffff:127.0.0.2") == "127.0.0.2"


def test_an_ipv4_mapped_hop_is_skipped_when_it_is_a_trusted_proxy(behind):
    headers = {"X-Forwarded-For": f"{CLIENT}, ::ffff:{EDGE}"}
    assert seen_address(behind, headers) == CLIENT


@pytest.mark.parametrize("peer", ["10.0.1.1", "127.0.0.1", "2001:db8:fffe::1"])
def test_other_peers_are_not_believed(behind, peer):
    assert seen_address(behind, {"X-Forwarded-For": CLIENT}, peer=peer) == peer


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": CLIENT},
        {"Forwarded": f"for={CLIENT}"},
        {"X-Real-IP": CLIENT},
        {"Client-IP": CLIENT},
    ],
    ids=str,
)
def test_by_default_nobody_is_believed(api, headers):
    assert seen_address(api, headers, peer="203.0.113.9") == "203.0.113.9"


def test_forwarded_scheme_and_host_make_the_own_origin(behind):
    origin = "https://files.example.com"
    headers = {
        "Origin": origin,
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "files.example.com",
    }
    answer = behind.login("nobody", "password", headers=headers, address=PROXY)
    answer.fails(401, "auth.credentials_failed")
    answer = behind.login("nobody", "password", headers=headers, address=CLIENT)
    answer.fails(403, "auth.request_origin_untrusted")


def test_the_nearest_proxys_word_counts(behind):
    headers = {
        "Origin": "https://files.example.com",
        "X-Forwarded-Proto": "http, https",
        "X-Forwarded-Host": "evil.example, files.example.com",
    }
    answer = behind.login("nobody", "password", headers=headers, address=PROXY)
    answer.fails(401, "auth.credentials_failed")


def test_the_standard_header_makes_the_own_origin(behind):
    headers = {
        "Origin": "https://files.example.com",
        "Forwarded": f"for={CLIENT};proto=https;host=files.example.com",
    }
    answer = behind.login("nobody", "password", headers=headers, address=PROXY)
    answer.fails(401, "auth.credentials_failed")


def test_a_forwarding_header_of_a_client_does_not_move_its_count(behind):
    user = make_user(behind.app.extensions["gatehouse"])
    for number in range(10):
        behind.login(
            user,
            "wrong password",
            headers={"X-Forwarded-For": f"1.1.1.{number}, {CLIENT}"},
            address=PROXY,
        ).fails(401, "auth.credentials_failed")
    answer = behind.login(user, headers={"X-Forwarded-For": CLIENT}, address=PROXY)
    answer.fails(429, "rate_limited")
