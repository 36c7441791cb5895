"""GET /auth/sessions and its DELETEs."""

import json
import uuid
from urllib.parse import quote

import pytest

from app.core.client import Client
from app.sessions import access_token
from app.sessions.queries import MAX_LISTED
from app.sessions.service import open_session
from tests.support.factories import audit_rows, make_user


def sessions(client):
    return client.get("/auth/sessions").ok()


def session_id(client):
    return next(s["id"] for s in sessions(client) if s["is_current"])


@pytest.fixture
def laptop(api, user, clock):
    api.login(user, headers={"User-Agent": "Laptop"}, address="198.51.100.1").ok()
    return api


@pytest.fixture
def phone(laptop, user, clock):
    clock.advance(minutes=1)
    device = laptop.stranger()
    device.login(user, headers={"User-Agent": "Phone"}, address="198.51.100.2").ok()
    return device


# --- the list ----------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_the_list_shows_every_live_session_the_last_seen_first(laptop, phone, clock):
    listed = sessions(laptop)
    assert [s["user_agent"] for s in listed] == ["Phone", "Laptop"]
    clock.advance(minutes=1)
    laptop.refresh(headers={"User-Agent": "Laptop"}).ok()
    assert [s["user_agent"] for s in sessions(phone)] == ["Laptop", "Phone"]


def test_an_entry_has_its_documented_members(laptop):
    [entry] = sessions(laptop)
    assert set(entry) == {
        "id",
        "is_current",
        "ip_address",
        "user_agent",
        "created_at",
        "last_seen_at",
        "expires_at",
    }
    assert str(uuid.UUID(entry["id"])) == entry["id"]


def test_the_refresh_cookie_tells_which_is_current(laptop, phone):
    assert [s["is_current"] for s in sessions(laptop)] == [False, True]
    assert [s["is_current"] for s in sessions(phone)] == [True, False]


def test_without_refresh_cookie_none_is_current(laptop, phone):
    assert not any(s["is_current"] for s in sessions(laptop.bearer()))
    laptop.set_cookie("service_refresh", "unknown")
    assert not any(s["is_current"] for s in sessions(laptop))


def test_a_consumed_refresh_cookie_marks_none(laptop):
    copy = laptop.twin()
    laptop.refresh().ok()
    assert not any(s["is_current"] for s in sessions(copy))


def test_of_very_many_sessions_the_last_seen_are_listed_and_the_current_one(
    rt, laptop, user, clock
):
    """Whoever signs in without end must not have a worker read and write them all."""
    own = session_id(laptop)
    made = add_sessions(rt, user, clock, MAX_LISTED + 1)
    listed = sessions(laptop)
    newest_first = [*reversed(made[2:]), own]
    assert [s["id"] for s in listed] == newest_first
    assert [s["id"] for s in listed if s["is_current"]] == [own]
    assert laptop.delete("/auth/sessions/others").ok() == {"removed": MAX_LISTED + 1}


def add_sessions(rt, user, clock, number):
    """Add sessions a second apart; return their ids, oldest first."""
    made = []
    with rt.transaction() as session:
        for _ in range(number):
            clock.advance(seconds=1)
            pair = open_session(rt, session, user.id, Client(None), is_limited=False)
            made.append(access_token.read(rt.keyring, pair.access_token, clock.now())[0])
    return made


@pytest.mark.both_databases
def test_ended_and_expired_sessions_are_not_listed(laptop, phone, user, clock):
    phone.post("/auth/logout").ok()
    assert [s["user_agent"] for s in sessions(laptop)] == ["Laptop"]
    clock.advance(days=6)
    laptop.login(user, headers={"User-Agent": "New"}).ok()
    clock.advance(days=1)
    laptop.refresh(headers={"User-Agent": "New"}).ok()
    assert [s["user_agent"] for s in sessions(laptop)] == ["New"]


def test_nobody_sees_other_peoples_sessions(rt, laptop, phone):
    stranger = laptop.stranger()
    stranger.login(make_user(rt)).ok()
    assert len(sessions(stranger)) == 1


def test_long_and_strange_user_agents_are_kept_within_bounds(api, user):
    api.login(user, headers={"User-Agent": "x" * 600}).ok()
    api.login(user, headers={"User-Agent": "a\tb\xe9"}).ok()
    agents = {s["user_agent"] for s in sessions(api)}
    assert agents == {"x" * 512, "ab\xe9"}


def test_a_missing_user_agent_is_null(api, user):
    api.login(user, headers={"User-Agent": ""}).ok()
    assert sessions(api)[0]["user_agent"] is None


# --- ending one --------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_ending_another_device_takes_effect_at_once(laptop, phone):
    answer = laptop.delete(f"/auth/sessions/{session_id(phone)}")
    assert answer.ok() is None
    assert answer.set_cookies == {}
    phone.me().fails(401, "auth.token_invalid")
    phone.refresh().fails(401, "auth.token_invalid")
    assert len(sessions(laptop)) == 1


def test_ending_the_current_session_clears_the_cookies(laptop, phone):
    copy = laptop.bearer()
    answer = laptop.delete(f"/auth/sessions/{session_id(laptop)}")
    assert answer.ok() is None
    assert set(answer.set_cookies) == {"service_access", "service_refresh", "service_csrf"}
    assert laptop.cookies == {}
    copy.me().fails(401, "auth.token_invalid")
    phone.me().ok()


def test_a_bearer_ending_its_own_session_has_the_cookies_cleared_too(laptop):
    own = session_id(laptop)
    answer = laptop.bearer().delete(f"/auth/sessions/{own}")
    assert set(answer.set_cookies) == {"service_access", "service_refresh", "service_csrf"}


def test_ending_a_session_again_is_fine(rt, laptop, phone):
    target = session_id(phone)
    for _ in range(3):
        laptop.delete(f"/auth/sessions/{target}").ok()
    assert len(audit_rows(rt, "user_revoke_session")) == 1


def test_other_peoples_sessions_are_not_found(admin, rt, laptop):
    """Administrators have no more rights here."""
    other, boss = laptop.stranger(), laptop.stranger()
    other.login(make_user(rt)).ok()
    boss.login(admin).ok()
    for client in (laptop, boss):
        client.delete(f"/auth/sessions/{session_id(other)}").fails(404, "not_found")
    other.me().ok()


def test_an_unknown_or_malformed_id_is_not_found(laptop, phone):
    own = session_id(phone)
    for unknown in (
        *("1", "x", "0", "-1", "null", "\0", "a" * 500, "d9428888-122b-11e1-b85c-61cd3cbb321", "é"),
        *(f"{{{own}}}", f"urn:uuid:{own}", f" {own}", f"{own}-", own.replace("-", "")),
        str(uuid.uuid4()),
    ):
        answer = laptop.delete(f"/auth/sessions/{quote(unknown)}")
        assert (answer.status, answer.code) == (404, "not_found"), unknown
    phone.me().ok()


def test_an_id_in_capitals_is_understood(laptop, phone):
    laptop.delete(f"/auth/sessions/{session_id(phone).upper()}").ok()
    phone.me().fails(401, "auth.token_invalid")


def test_a_user_agent_is_read_as_utf_8_where_it_is(laptop, user):
    for sent, listed in (("Gerät 世界".encode(), "Gerät 世界"), (b"Ger\xe4t", "Gerät")):
        device = laptop.stranger()
        device.login(user, headers={"User-Agent": sent.decode("latin-1")}).ok()
        assert listed in [s["user_agent"] for s in sessions(device)]
        device.post("/auth/logout").ok()


def test_ending_a_session_is_audited(rt, laptop, phone, user):
    target, own = session_id(phone), session_id(laptop)
    laptop.delete(f"/auth/sessions/{target}").ok()
    laptop.delete(f"/auth/sessions/{own}").ok()
    first, second = audit_rows(rt, "user_revoke_session")
    assert (first.user_id, first.entity_type) == (user.id, "auth_session")
    assert json.loads(first.details) == {"session_id": target, "revoked_current": False}
    assert json.loads(second.details) == {"session_id": own, "revoked_current": True}


# --- ending the others -------------------------------------------------------------------------


def test_ending_the_others_keeps_the_current_one(laptop, phone, user):
    tablet = laptop.stranger()
    tablet.login(user).ok()
    answer = laptop.delete("/auth/sessions/others")
    assert answer.ok() == {"removed": 2}
    assert answer.set_cookies == {}
    phone.me().fails(401, "auth.token_invalid")
    tablet.refresh().fails(401, "auth.token_invalid")
    laptop.me().ok()
    laptop.refresh().ok()
    assert laptop.delete("/auth/sessions/others").ok() == {"removed": 0}


@pytest.mark.both_databases
def test_ended_and_expired_sessions_do_not_count(laptop, phone, user, clock):
    phone.post("/auth/logout").ok()
    clock.advance(days=6)
    laptop.login(user).ok()
    clock.advance(days=1)
    laptop.refresh().ok()
    assert laptop.delete("/auth/sessions/others").ok() == {"removed": 0}


def test_the_others_need_the_refresh_cookie(laptop, phone):
    laptop.bearer().delete("/auth/sessions/others").fails(401, "auth.token_missing")
    laptop.drop_cookie("service_refresh")
    laptop.delete("/auth/sessions/others").fails(401, "auth.token_missing")
    phone.me().ok()


def test_the_others_need_a_good_refresh_cookie(laptop, phone):
    spent = laptop.refresh_token
    laptop.refresh().ok()
    for token in ("unknown", spent):
        laptop.set_cookie("service_refresh", token)
        laptop.delete("/auth/sessions/others").fails(401, "auth.token_invalid")
    phone.me().ok()


def test_an_ended_refresh_session_keeps_nothing(laptop, phone):
    mixed = laptop.twin()
    mixed.set_cookie("service_refresh", phone.refresh_token)
    phone.post("/auth/logout").ok()
    mixed.delete("/auth/sessions/others").fails(401, "auth.token_invalid")


def test_an_expired_refresh_session_keeps_nothing(rt, laptop, user, clock):
    old = laptop.refresh_token
    clock.advance(days=7)
    laptop.login(user).ok()
    laptop.set_cookie("service_refresh", old)
    laptop.delete("/auth/sessions/others").fails(401, "auth.token_invalid")


def test_somebody_elses_refresh_cookie_is_a_mismatch(rt, laptop, phone):
    other = laptop.stranger()
    other.login(make_user(rt)).ok()
    mixed = laptop.twin()
    mixed.set_cookie("service_refresh", other.refresh_token)
    mixed.delete("/auth/sessions/others").fails(403, "auth.session_user_mismatch")
    for client in (phone, laptop, other):
        client.me().ok()


def test_ending_the_others_touches_nobody_else(rt, laptop, phone):
    other = laptop.stranger()
    other.login(make_user(rt)).ok()
    laptop.delete("/auth/sessions/others").ok()
    other.me().ok()


def test_ending_the_others_is_audited(rt, laptop, phone, user):
    laptop.delete("/auth/sessions/others").ok()
    [entry] = audit_rows(rt, "user_revoke_other_sessions")
    assert (entry.user_id, entry.entity_type) == (user.id, "auth_session")
    assert json.loads(entry.details) == {"removed": 1}
