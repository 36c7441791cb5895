"""POST /auth/logout."""

import pytest

from tests.support.factories import audit_rows, change_user, make_user

CLEARED = {"service_access": "/", "service_refresh": "/api/v1/auth", "service_csrf": "/"}


def assert_clears(answer):
    answer.ok()
    assert {n: c.attributes["path"] for n, c in answer.set_cookies.items()} == CLEARED
    for cookie in answer.set_cookies.values():
        assert (cookie.value, cookie.attributes["max-age"]) == ("", "0")


@pytest.mark.both_databases
def test_logout_clears_the_cookies_and_ends_the_session(signed_in):
    copy, bearer = signed_in.twin(), signed_in.bearer()
    answer = signed_in.post("/auth/logout")
    assert answer.ok() is None
    assert_clears(answer)
    assert signed_in.cookies == {}
    copy.me().fails(401, "auth.token_invalid")
    bearer.me().fails(401, "auth.token_invalid")
    copy.refresh().fails(401, "auth.token_invalid")


def test_logout_without_a_session_is_fine(api):
    assert_clears(api.post("/auth/logout"))
    assert_clears(api.post("/auth/logout"))


def test_logout_with_nonsense_is_fine(api):
    for name in CLEARED:
        api.set_cookie(name, "nonsense")
    assert_clears(api.post("/auth/logout"))
    assert_clears(api.stranger().bearer("nonsense").post("/auth/logout"))


def test_the_refresh_cookie_alone_ends_its_session(signed_in):
    copy = signed_in.twin()
    signed_in.drop_cookie("service_access")
    signed_in.post("/auth/logout").ok()
    copy.me().fails(401, "auth.token_invalid")


def test_the_access_cookie_alone_ends_its_session(signed_in):
    copy = signed_in.twin()
    signed_in.drop_cookie("service_refresh")
    signed_in.post("/auth/logout").ok()
    copy.refresh().fails(401, "auth.token_invalid")


def test_a_bearer_ends_its_session(signed_in):
    signed_in.bearer().post("/auth/logout").ok()
    signed_in.me().fails(401, "auth.token_invalid")


def test_an_expired_access_token_still_ends_its_session(signed_in, clock):
    bearer = signed_in.bearer()
    clock.advance(hours=1)
    bearer.me().fails(401, "auth.token_expired")
    bearer.post("/auth/logout").ok()
    signed_in.refresh().fails(401, "auth.token_invalid")


def test_only_this_session_ends(signed_in, user):
    other = signed_in.stranger()
    other.login(user).ok()
    signed_in.post("/auth/logout").ok()
    other.me().ok()
    other.refresh().ok()


def test_the_refresh_cookie_decides_when_the_two_differ(rt, signed_in, user):
    other = signed_in.stranger()
    other.login(user).ok()
    mixed = signed_in.twin()
    mixed.set_cookie("service_refresh", other.refresh_token)
    mixed.post("/auth/logout").ok()
    other.me().fails(401, "auth.token_invalid")


@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_the_refresh_cookie_of_a_session_that_is_over_does_not_decide(signed_in, user, clock, end):
    old = signed_in.twin()
    if end == "revoked":
        old.post("/auth/logout").ok()
    else:
        clock.advance(days=8)
    current = signed_in.stranger()
    current.login(user).ok()
    copy = current.twin()
    current.set_cookie("service_refresh", signed_in.refresh_token)
    assert_clears(current.post("/auth/logout"))
    copy.me().fails(401, "auth.token_invalid")


def test_a_consumed_refresh_cookie_beside_a_good_access_cookie_ends_that_session(signed_in):
    old = signed_in.refresh_token
    signed_in.refresh().ok()
    mixed = signed_in.twin()
    mixed.set_cookie("service_refresh", old)
    mixed.post("/auth/logout").ok()
    signed_in.me().fails(401, "auth.token_invalid")


def test_a_consumed_refresh_cookie_alone_raises_no_alarm(signed_in, user):
    other = signed_in.stranger()
    other.login(user).ok()
    thief = signed_in.twin()
    signed_in.refresh().ok()
    thief.drop_cookie("service_access")
    thief.post("/auth/logout").ok()
    other.me().ok()


def test_logout_is_audited_once(rt, signed_in, user):
    copy = signed_in.twin()
    signed_in.post("/auth/logout", headers={"User-Agent": "Firefox"}).ok()
    copy.post("/auth/logout").ok()
    [entry] = audit_rows(rt, "user_logout")
    assert (entry.user_id, entry.entity_type) == (user.id, "auth_session")
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "Firefox")


def test_logout_without_a_session_is_not_audited(rt, api):
    api.post("/auth/logout").ok()
    assert audit_rows(rt) == []


@pytest.mark.parametrize("cookie", ["service_access", "service_refresh"])
def test_another_site_cannot_log_anybody_out(signed_in, cookie):
    copy = signed_in.twin()
    other_cookie = ({"service_access", "service_refresh"} - {cookie}).pop()
    copy.drop_cookie(other_cookie)
    answer = copy.post("/auth/logout", headers={"Sec-Fetch-Site": "cross-site"})
    answer.fails(403, "auth.request_source_untrusted")
    assert answer.set_cookies == {}
    signed_in.me().ok()


def test_without_cookies_no_source_is_asked_for_but_none_are_taken_away(api):
    """Another site's form comes without them (SameSite), and its answer would clear them."""
    for name, value in (
        ("Sec-Fetch-Site", "cross-site"),
        ("Origin", "null"),
        ("Referer", "http://other/"),
    ):
        answer = api.post("/auth/logout", headers={name: value})
        assert (answer.status, answer.set_cookies) == (200, {}), name


def test_a_page_of_this_site_whose_cookies_have_expired_gets_rid_of_the_rest(browser):
    assert_clears(browser.post("/auth/logout"))


def test_a_disabled_account_can_log_out(rt, signed_in, user):
    change_user(rt, user, status="disabled")
    signed_in.post("/auth/logout").ok()
    change_user(rt, user, status="active")
    assert len(audit_rows(rt, "user_logout")) == 1


def test_somebody_elses_refresh_cookie_ends_somebody_elses_session(rt, signed_in):
    """Who holds the token may end it; nothing else is possible with it than that."""
    other = signed_in.stranger()
    other.login(make_user(rt)).ok()
    holder = signed_in.stranger()
    holder.set_cookie("service_refresh", other.refresh_token)
    holder.post("/auth/logout").ok()
    other.me().fails(401, "auth.token_invalid")
    signed_in.me().ok()
