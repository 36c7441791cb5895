"""POST /auth/refresh."""

import ipaddress
from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.sessions import queries, service
from app.sessions.models import LoginSession
from app.settings.errors import SettingInvalid
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    change_user,
    configure,
    delete_user,
    make_user,
)

WEEK = timedelta(days=7)


@pytest.fixture
def others(signed_in, user):
    """A second device of the same user."""
    device = signed_in.stranger()
    device.login(user).ok()
    return device


def test_a_refresh_replaces_all_three_cookies(signed_in):
    before = signed_in.cookies
    answer = signed_in.refresh()
    assert answer.ok() == {"expires_in": 900}
    after = signed_in.cookies
    assert set(answer.set_cookies) == set(before) == set(after)
    assert all(before[name] != after[name] for name in before)
    signed_in.me().ok()


def test_a_refresh_keeps_the_session(signed_in):
    [before] = signed_in.get("/auth/sessions").ok()
    signed_in.refresh().ok()
    [after] = signed_in.get("/auth/sessions").ok()
    assert after["id"] == before["id"]
    assert after["is_current"] is True
    assert after["created_at"] == before["created_at"]


@pytest.mark.both_databases
def test_the_session_slides_and_notes_who_came(signed_in, clock):
    clock.advance(days=3)
    signed_in.refresh(address="198.51.100.7", headers={"User-Agent": "Safari"}).ok()
    [session] = signed_in.get("/auth/sessions").ok()
    assert session["last_seen_at"] == clock.now().isoformat().replace("+00:00", "Z")
    assert session["expires_at"] == (clock.now() + WEEK).isoformat().replace("+00:00", "Z")
    assert (session["ip_address"], session["user_agent"]) == ("198.51.100.7", "Safari")


def test_a_refresh_without_user_agent_keeps_the_known_one(rt, api, user):
    api.login(user, headers={"User-Agent": "Firefox"}).ok()
    api.refresh(headers={"User-Agent": ""}).ok()
    [session] = api.get("/auth/sessions").ok()
    assert session["user_agent"] == "Firefox"


def test_the_old_access_token_stays_good_until_its_time(signed_in, clock):
    old = signed_in.bearer()
    signed_in.refresh().ok()
    old.me().ok()
    clock.advance(seconds=906)
    old.me().fails(401, "auth.token_expired")


def test_a_refresh_is_not_audited(rt, signed_in):
    signed_in.refresh().ok()
    assert [entry.action for entry in audit_rows(rt)] == ["user_login"]


def test_new_lifetimes_count_from_the_next_refresh(rt, signed_in, clock):
    configure(rt, auth_access_token_ttl_secs=60, auth_refresh_token_ttl_secs=3600)
    answer = signed_in.refresh()
    assert answer.ok() == {"expires_in": 60}
    assert answer.set_cookies["service_refresh"].attributes["max-age"] == "3600"
    clock.advance(seconds=3599)
    signed_in.refresh().ok()
    clock.advance(seconds=3600)
    signed_in.refresh().fails(401, "auth.token_expired")


# --- refusals ----------------------------------------------------------------------------------


def test_without_the_cookie_the_token_is_missing(signed_in):
    signed_in.bearer().refresh().fails(401, "auth.token_missing")
    signed_in.set_cookie("service_refresh", "")
    signed_in.refresh().fails(401, "auth.token_missing")
    signed_in.drop_cookie("service_refresh")
    signed_in.refresh().fails(401, "auth.token_missing")


def test_an_unknown_token_is_invalid(signed_in):
    for token in ("x", "A" * 43, "A" * 70, "A" * 4000, "a.b.c", "%00", signed_in.access_token):
        signed_in.set_cookie("service_refresh", token)
        answer = signed_in.refresh()
        assert (answer.status, answer.code) == (401, "auth.token_invalid"), token
        assert answer.set_cookies == {}
    signed_in.me().ok()


def test_the_token_lives_exactly_its_time(signed_in, user, clock):
    other = signed_in.stranger()
    other.login(user).ok()
    clock.advance(days=7, seconds=-1)
    other.refresh().ok()
    clock.advance(seconds=1)
    signed_in.refresh().fails(401, "auth.token_expired")


def test_a_disabled_account_is_told_so_whatever_became_of_the_session(rt, signed_in, user):
    spent = signed_in.twin()
    signed_in.refresh().ok()
    ended = signed_in.stranger()
    ended.login(user).ok()
    copy = ended.twin()
    ended.post("/auth/logout").ok()
    change_user(rt, user, status="disabled")
    for client in (signed_in, spent, copy):
        client.refresh().fails(403, "auth.account_disabled")
    change_user(rt, user, status="active")
    signed_in.refresh().ok()


def test_a_deleted_accounts_token_is_invalid(rt, signed_in, user):
    delete_user(rt, user)
    signed_in.refresh().fails(401, "auth.token_invalid")


def test_a_forced_password_change_stops_refreshing(rt, signed_in, user):
    change_user(rt, user, must_change_password=True)
    signed_in.refresh().fails(403, "auth.password_change_required")
    signed_in.login(user).ok()
    signed_in.refresh().fails(403, "auth.password_change_required")


def test_a_restricted_sessions_token_never_becomes_a_normal_one(rt, api, user):
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    change_user(rt, user, must_change_password=False)
    api.refresh().fails(403, "auth.password_change_required")


# --- replay ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_replaying_the_newest_consumed_token_ends_every_session(rt, signed_in, others, user):
    thief = signed_in.twin()
    signed_in.refresh().ok()
    answer = thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    assert answer.set_cookies == {}
    signed_in.me().fails(401, "auth.token_invalid")
    others.me().fails(401, "auth.token_invalid")
    signed_in.refresh().fails(401, "auth.token_invalid")
    others.refresh().fails(401, "auth.token_invalid")
    signed_in.login(user).ok()
    signed_in.me().ok()


def test_replaying_any_older_token_does_the_same(signed_in, others, clock):
    thief = signed_in.twin()
    for _ in range(3):
        clock.advance(minutes=10)
        signed_in.refresh().ok()
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    signed_in.me().fails(401, "auth.token_invalid")
    others.refresh().fails(401, "auth.token_invalid")


def test_a_replay_long_after_is_still_noticed(signed_in, others, clock):
    thief = signed_in.twin()
    signed_in.refresh().ok()
    clock.advance(days=7, seconds=-1)
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    signed_in.refresh().fails(401, "auth.token_invalid")


def test_a_token_replayed_after_it_would_have_expired_alarms_nobody(signed_in, clock):
    thief = signed_in.twin()
    clock.advance(days=1)
    signed_in.refresh().ok()
    clock.advance(days=6)
    answer = thief.refresh()
    assert answer.status == 401
    assert answer.code in {"auth.token_expired", "auth.token_invalid"}
    signed_in.refresh().ok()


def test_other_users_keep_their_sessions(rt, signed_in):
    other = signed_in.stranger()
    other.login(make_user(rt)).ok()
    thief = signed_in.twin()
    signed_in.refresh().ok()
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    other.me().ok()
    other.refresh().ok()


def test_after_the_alarm_a_token_of_an_ended_session_alarms_nobody(signed_in, user):
    thief = signed_in.twin()
    signed_in.refresh().ok()
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    fresh = signed_in.stranger()
    fresh.login(user).ok()
    thief.refresh().fails(401, "auth.token_invalid")
    signed_in.refresh().fails(401, "auth.token_invalid")
    fresh.me().ok()


def test_a_consumed_token_of_a_logged_out_session_alarms_nobody(signed_in, others):
    thief = signed_in.twin()
    signed_in.refresh().ok()
    signed_in.post("/auth/logout").ok()
    thief.refresh().fails(401, "auth.token_invalid")
    others.me().ok()


def test_a_replay_is_audited_once_without_the_token(rt, signed_in, user):
    thief = signed_in.twin()
    stolen = thief.refresh_token
    signed_in.refresh().ok()
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    thief.refresh().fails(401, "auth.token_invalid")
    [entry] = audit_rows(rt, "user_refresh_token_reuse_detected")
    assert (entry.entity_type, entry.entity_id, entry.user_id) == ("user", user.id, user.id)
    assert stolen not in str(entry)


def test_the_user_agent_or_address_excuses_no_replay(signed_in, user):
    thief = signed_in.twin()
    signed_in.refresh(headers={"User-Agent": "Same"}, address="198.51.100.1").ok()
    answer = thief.refresh(headers={"User-Agent": "Same"}, address="198.51.100.1")
    answer.fails(401, "auth.refresh_token_reuse_detected")


# --- honest races ------------------------------------------------------------------------------


@pytest.fixture
def proxied(make_app):
    """The service behind a proxy it trusts."""
    return make_app(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),))


def arriving(moment) -> dict[str, str]:
    return {"X-Request-Start": f"t={moment.timestamp():.3f}"}


def test_a_request_that_arrived_before_the_rotation_is_stale(proxied, clock, user):
    client = ApiClient(proxied)
    client.login(user).ok()
    late = client.twin()
    sent = clock.now()
    clock.advance(seconds=2)
    client.refresh(headers=arriving(sent)).ok()
    clock.advance(seconds=1)
    answer = late.refresh(headers=arriving(sent)).fails(401, "auth.refresh_token_stale")
    assert answer.set_cookies == {}
    client.me().ok()
    client.refresh().ok()


def test_the_race_is_judged_by_arrival_not_by_a_window(proxied, clock, user):
    client = ApiClient(proxied)
    client.login(user).ok()
    thief = client.twin()
    client.refresh().ok()
    clock.advance(seconds=0.01)
    sent = clock.now()
    answer = thief.refresh(headers=arriving(sent))
    answer.fails(401, "auth.refresh_token_reuse_detected")


def test_an_older_token_is_judged_by_its_own_rotation(proxied, clock, user):
    client = ApiClient(proxied)
    client.login(user).ok()
    first = client.twin()
    client.refresh().ok()
    sent = clock.advance(seconds=1)
    clock.advance(seconds=1)
    client.refresh().ok()
    first.refresh(headers=arriving(sent)).fails(401, "auth.refresh_token_reuse_detected")


def test_a_request_that_arrived_before_two_rotations_is_stale_as_well(proxied, clock, user):
    """What counts is when it arrived, not how far the session has moved on since."""
    client = ApiClient(proxied)
    client.login(user).ok()
    late = client.twin()
    sent = clock.now()
    clock.advance(seconds=1)
    client.refresh().ok()
    clock.advance(seconds=1)
    client.refresh().ok()
    late.refresh(headers=arriving(sent)).fails(401, "auth.refresh_token_stale")
    client.me().ok()


def test_a_senseless_time_of_arrival_is_ignored(proxied, clock, user):
    client = ApiClient(proxied)
    for header in ("t=0", "t=-1", "t=nan", "t=inf", "t=", "x", "t=1e20", "", "t=99999999999"):
        client.login(user).ok()
        thief = client.twin()
        client.refresh().ok()
        clock.advance(seconds=1)
        answer = thief.refresh(headers={"X-Request-Start": header})
        assert answer.code == "auth.refresh_token_reuse_detected", header


def test_only_a_trusted_proxy_tells_the_time_of_arrival(signed_in, clock):
    thief = signed_in.twin()
    sent = clock.now()
    clock.advance(seconds=2)
    signed_in.refresh().ok()
    clock.advance(seconds=1)
    answer = thief.refresh(headers=arriving(sent))
    answer.fails(401, "auth.refresh_token_reuse_detected")


@pytest.mark.both_databases
def test_a_token_spent_while_its_refresh_was_under_way_is_stale(signed_in, clock, monkeypatch):
    """Two requests bring the same live token; the one that came later is faster."""
    late = signed_in.twin()
    expiry = service.refresh_expiry

    def overtaken(*arguments):
        monkeypatch.setattr(service, "refresh_expiry", expiry)
        clock.advance(seconds=0.001)
        signed_in.refresh().ok()
        return expiry(*arguments)

    monkeypatch.setattr(service, "refresh_expiry", overtaken)
    answer = late.refresh().fails(401, "auth.refresh_token_stale")
    assert answer.set_cookies == {}
    signed_in.me().ok()
    signed_in.refresh().ok()


def test_a_session_that_ends_while_its_refresh_is_under_way_gives_no_token(signed_in, monkeypatch):
    copy = signed_in.twin()
    expiry = service.refresh_expiry

    def overtaken(*arguments, **options):
        copy.post("/auth/logout").ok()
        return expiry(*arguments, **options)

    monkeypatch.setattr(service, "refresh_expiry", overtaken)
    signed_in.refresh().fails(401, "auth.token_invalid")


def test_an_account_enabled_again_while_its_refresh_is_under_way_may_try_again(
    rt, signed_in, user, monkeypatch
):
    expiry, find = service.refresh_expiry, queries.find_by_token

    def too_early(*arguments, **options):
        change_user(rt, user, status="disabled")
        return expiry(*arguments, **options)

    def too_late(*arguments):
        change_user(rt, user, status="active")
        return find(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(service, "refresh_expiry", too_early)
        patch.setattr(queries, "find_by_token", too_late)
        signed_in.refresh().fails(401, "auth.refresh_token_stale")
    signed_in.refresh().ok()


# --- the grace key -----------------------------------------------------------------------------


def test_the_grace_makes_a_late_refresh_of_the_same_browser_stale(rt, api, user, clock):
    configure(rt, auth_refresh_reuse_grace_secs=10)
    browser = {"User-Agent": "Firefox"}
    api.login(user, headers=browser).ok()
    tab = api.twin()
    api.refresh(headers=browser).ok()
    clock.advance(seconds=10)
    answer = tab.refresh(headers=browser).fails(401, "auth.refresh_token_stale")
    assert answer.set_cookies == {}
    api.me().ok()


def test_the_grace_ends(rt, api, user, clock):
    configure(rt, auth_refresh_reuse_grace_secs=10)
    browser = {"User-Agent": "Firefox"}
    api.login(user, headers=browser).ok()
    tab = api.twin()
    api.refresh(headers=browser).ok()
    clock.advance(seconds=10.001)
    tab.refresh(headers=browser).fails(401, "auth.refresh_token_reuse_detected")


@pytest.mark.parametrize("agent", ["Chrome", "", "firefox"])
def test_the_grace_is_for_the_same_user_agent_only(rt, api, user, clock, agent):
    configure(rt, auth_refresh_reuse_grace_secs=60)
    api.login(user, headers={"User-Agent": "Firefox"}).ok()
    thief = api.twin()
    api.refresh(headers={"User-Agent": "Firefox"}).ok()
    answer = thief.refresh(headers={"User-Agent": agent})
    answer.fails(401, "auth.refresh_token_reuse_detected")


def test_the_grace_is_at_most_a_minute(rt):
    with pytest.raises(SettingInvalid):
        configure(rt, auth_refresh_reuse_grace_secs=61)


# --- storage -----------------------------------------------------------------------------------


def test_no_token_is_stored_in_clear(rt, signed_in):
    tokens = {signed_in.refresh_token, signed_in.access_token}
    signed_in.refresh().ok()
    tokens |= {signed_in.refresh_token, signed_in.access_token}
    with rt.reading() as connection:
        [row] = connection.execute(sa.select(*LoginSession.__table__.columns))
    stored = " ".join(map(str, row))
    for token in tokens:
        assert token not in stored
        assert token[:20] not in stored


def test_a_refresh_token_has_256_bits_of_its_own(signed_in):
    tokens = set()
    for _ in range(3):
        tokens.add(signed_in.refresh_token[-43:])
        signed_in.refresh().ok()
    assert len(tokens) == 3
