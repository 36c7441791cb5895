"""The three cookies of a session, and that by which a browser is known."""

import re

import pytest

from tests.support.factories import configure

DEVICE = "service_device"
PATHS = {
    "service_access": "/",
    "service_refresh": "/api/v1/auth",
    "service_csrf": "/",
    DEVICE: "/api/v1/auth",
}
LIVES = {
    "service_access": "900",
    "service_refresh": "604800",
    "service_csrf": "604800",
    DEVICE: "34560000",
}


def change_password(client, user):
    body = {"current_password": user.password, "new_password": "another good one"}
    return client.put("/auth/password", body)


WRITERS = {
    "login": lambda client, user: client.login(user),
    "refresh": lambda client, user: client.refresh(),
    "password": change_password,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_pair_is_written_with_its_attributes(signed_in, user, writer):
    cookies = WRITERS[writer](signed_in, user).set_cookies
    assert set(cookies) == set(PATHS) - ({DEVICE} if writer != "login" else set())
    for name, cookie in cookies.items():
        assert cookie.attributes["path"] == PATHS[name]
        assert cookie.attributes["max-age"] == LIVES[name]
        assert cookie.attributes["samesite"] == "Lax"
        assert ("httponly" in cookie.attributes) == (name != "service_csrf")
        assert "domain" not in cookie.attributes
        assert "secure" not in cookie.attributes


def test_clearing_repeats_path_and_attributes(signed_in):
    cookies = signed_in.post("/auth/logout").set_cookies
    for name, cookie in cookies.items():
        assert (cookie.value, cookie.attributes["max-age"]) == ("", "0")
        assert cookie.attributes["path"] == PATHS[name]
        assert cookie.attributes["samesite"] == "Lax"
        assert ("httponly" in cookie.attributes) == (name != "service_csrf")


@pytest.mark.parametrize("writer", WRITERS)
def test_the_csrf_token_is_new_with_every_pair(signed_in, user, writer):
    before = signed_in.cookies["service_csrf"]
    after = WRITERS[writer](signed_in, user).set_cookies["service_csrf"].value
    assert after != before
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", after)


def test_every_value_is_safe_in_a_cookie(signed_in):
    for value in signed_in.cookies.values():
        assert re.fullmatch(r"[A-Za-z0-9._-]+", value)


@pytest.mark.parametrize(("stored", "is_secure"), [(True, True), (False, False)])
def test_secure_follows_its_switch(rt, api, user, stored, is_secure):
    configure(rt, auth_cookie_secure=stored)
    for answer in (api.login(user), api.refresh(), api.post("/auth/logout")):
        for cookie in answer.set_cookies.values():
            assert ("secure" in cookie.attributes) == is_secure


def test_lifetimes_follow_their_settings(rt, api, user):
    configure(rt, auth_access_token_ttl_secs=60, auth_refresh_token_ttl_secs=120)
    cookies = api.login(user).set_cookies
    ages = {name: cookie.attributes["max-age"] for name, cookie in cookies.items()}
    session = {"service_access": "60", "service_refresh": "120", "service_csrf": "120"}
    assert ages == LIVES | session


def test_the_refresh_cookie_stays_below_its_path(signed_in):
    assert signed_in._client.get_cookie("service_refresh", path="/") is None


def test_reading_writes_no_cookies(signed_in):
    for path in ("/auth/me", "/auth/sessions", "/public/frontend-config"):
        assert signed_in.get(path).set_cookies == {}
