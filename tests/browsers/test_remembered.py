"""Browsers that are not asked for the second step."""

import json

import pytest

from app.browsers import service
from app.browsers.models import Browser
from tests.browsers.conftest import MONTH, is_asked, trust
from tests.support.api import ApiClient
from tests.support.authenticator import finish_setup, start_setup
from tests.support.challenge import everything_in_redis, give_totp, start_login, verify
from tests.support.external import link, sign_in
from tests.support.factories import (
    audit_rows,
    change_user,
    configure,
    count,
    make_user,
    moment,
)
from tests.support.fake_provider import SUBJECT

DEVICES = "/auth/mfa/devices"
DEVICE = "service_device"


# --- granting ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_remembered_browser_skips_the_second_step(remembered, user):
    assert remembered.login(user).ok() == {"status": "authenticated", "expires_in": 900}


def test_another_browser_is_asked_for_it(remembered, user):
    assert is_asked(remembered.stranger(), user)


def test_no_browser_is_remembered_while_that_is_off(api, user, enabled):
    assert api.login(user).ok()["remember_device_secs"] == 0
    trust(api, user, enabled)
    assert is_asked(api, user)
    assert api.get(DEVICES).ok() == []


def test_a_login_that_waits_says_for_how_long_a_browser_can_be_remembered(
    api, user, enabled, trusting
):
    assert api.login(user).ok()["remember_device_secs"] == MONTH


def test_a_browser_is_remembered_only_if_its_owner_wants_that(api, user, enabled, trusting):
    verify(api, start_login(api, user), enabled.app.code()).ok()
    assert is_asked(api, user)


def test_it_is_not_remembered_by_a_session_that_ends_with_the_window(api, user, enabled, trusting):
    trust(api, user, enabled, remember=False)
    assert is_asked(api, user)


def test_it_is_not_remembered_with_a_restricted_session(rt, api, user, enabled, trusting):
    change_user(rt, user, must_change_password=True)
    trust(api, user, enabled)
    change_user(rt, user, must_change_password=False)
    assert is_asked(api, user)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_wanting_it_takes_a_boolean(api, user, enabled, trusting, value):
    body = {"flow_token": start_login(api, user), "method": "totp", "code": enabled.app.code()}
    answer = api.post("/auth/mfa/challenge/verify", {**body, "remember_device": value})
    answer.fails(400, "bad_request")


def test_it_is_remembered_as_long_as_is_set(remembered, user, clock):
    clock.advance(seconds=MONTH - 1)
    assert not is_asked(remembered, user)
    clock.advance(seconds=1)
    assert is_asked(remembered, user)


def test_using_it_does_not_make_it_last_longer(remembered, user, clock):
    for _ in range(2):
        clock.advance(days=15)
        answer = remembered.login(user).ok()
    assert answer["status"] == "mfa_required"


def test_the_setting_in_force_bounds_earlier_grants(rt, remembered, user, clock):
    configure(rt, auth_mfa_trusted_device_secs=3600)
    assert not is_asked(remembered, user)
    clock.advance(hours=1)
    assert is_asked(remembered, user)
    configure(rt, auth_mfa_trusted_device_secs=90 * 86_400)
    assert not is_asked(remembered, user)
    clock.advance(seconds=MONTH)
    assert is_asked(remembered, user)


def test_switched_off_and_on_again_nothing_is_remembered(rt, remembered, user):
    configure(rt, auth_mfa_trusted_device_secs=0)
    assert is_asked(remembered, user)
    assert remembered.get(DEVICES).ok() == []
    assert remembered.delete(DEVICES).ok() == {"removed": 0}
    configure(rt, auth_mfa_trusted_device_secs=MONTH)
    assert is_asked(remembered, user)


def test_so_is_nothing_once_the_setting_has_its_default_again(rt, line, remembered, user):
    line.json("config", "unset", "auth_mfa_trusted_device_secs")
    configure(rt, auth_mfa_trusted_device_secs=MONTH)
    assert is_asked(remembered, user)


@pytest.mark.parametrize("value", [60, 90 * 86_400 + 1, -1])
def test_the_setting_takes_an_hour_to_ninety_days(line, value):
    line.refuses("bad_request", "config", "set", "auth_mfa_trusted_device_secs", str(value))


def test_a_clock_that_was_ahead_has_remembered_nothing(api, user, enabled, trusting, clock):
    clock.advance(days=400)
    trust(api, user, enabled)
    clock.turn(days=-400)
    assert is_asked(api, user)


# --- what the cookie is worth --------------------------------------------------------------------


def test_it_never_replaces_the_first_step(remembered, user):
    remembered.login(user, "not the password").fails(401, "auth.credentials_failed")
    remembered.forget()
    remembered.me().fails(401, "auth.token_missing")


def test_it_is_worth_nothing_for_another_account(rt, remembered, clock):
    other = make_user(rt)
    give_totp(rt, other, clock)
    assert is_asked(remembered, other)


def test_a_session_opened_without_the_second_step_begins_unconfirmed(remembered, user, enabled):
    assert remembered.get("/auth/confirmation").ok()["is_fresh"] is True
    remembered.login(user).ok()
    shown = remembered.get("/auth/confirmation").ok()
    assert (shown["is_fresh"], shown["expires_in"]) == (False, 0)
    remembered.get("/auth/export").fails(412, "precondition_failed")
    body = {"method": "password", "password": user.password, "code": enabled.app.wait()}
    remembered.post("/auth/confirmation", body).ok()
    assert remembered.get("/auth/confirmation").ok()["is_fresh"] is True


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/auth/passkeys/register/start", {"name": "Mine"}),
        ("/auth/email/change", {"new_email": "new@example.com"}),
        ("/auth/mfa/totp/setup/start", None),
    ],
)
def test_it_adds_nothing_by_which_it_could_then_be_confirmed(
    rt, remembered, user, enabled, path, body
):
    configure(rt, public_site_url=["https://example.com"])
    remembered.login(user).ok()
    remembered.post(path, body, described=False).fails(412, "precondition_failed")
    said = {"method": "password", "password": user.password, "code": enabled.app.wait()}
    remembered.post("/auth/confirmation", said).ok()
    assert remembered.post(path, body, described=False).status != 412


def test_it_may_remove_what_it_skipped_by(remembered, user):
    remembered.login(user).ok()
    assert remembered.delete(DEVICES).ok() == {"removed": 1}


@pytest.mark.parametrize("is_skipped", [True, False])
def test_a_new_password_does_not_confirm_what_a_second_step_would(
    remembered, user, clock, is_skipped
):
    if is_skipped:
        remembered.login(user).ok()
    else:
        clock.advance(hours=1)
        remembered.post("/auth/refresh").ok()
    body = {"current_password": user.password, "new_password": "another long password"}
    remembered.put("/auth/password", body).ok()
    assert remembered.get("/auth/confirmation").ok()["is_fresh"] is False


@pytest.mark.both_databases
def test_every_grant_replaces_the_value_for_all_accounts_of_the_browser(
    rt, remembered, user, enabled, clock
):
    """Whoever planted the old one, or copied it, gains nothing."""
    old = remembered.device
    other = make_user(rt)
    app = give_totp(rt, other, clock)
    trust(remembered, other, app)
    assert remembered.device != old
    assert not is_asked(remembered, user)
    assert not is_asked(remembered, other)
    thief = remembered.stranger()
    thief.set_cookie(DEVICE, old)
    assert is_asked(thief, user)
    assert is_asked(thief, other)


def test_a_planted_value_does_not_skip_the_step_that_its_victim_remembers(
    rt, api, user, enabled, trusting
):
    """A site of the same domain can set the cookie, to a value that was issued to its owner."""
    attacker, victim = ApiClient(api.app), api
    attacker.login(make_user(rt)).ok()
    victim.set_cookie(DEVICE, attacker.device)
    trust(victim, user, enabled)
    assert victim.device != attacker.device
    assert is_asked(attacker, user)


@pytest.mark.parametrize("planted", ["A" * 43, "x", "B" * 4000])
def test_a_value_that_was_not_issued_is_never_adopted(api, user, planted):
    api.set_cookie(DEVICE, planted)
    answer = api.login(user)
    answer.ok()
    assert answer.set_cookies[DEVICE].value != planted
    assert len(answer.set_cookies[DEVICE].value) == 43


@pytest.mark.both_databases
def test_accounts_of_one_browser_share_its_value(rt, api, user):
    api.login(user).ok()
    first = api.device
    api.login(make_user(rt)).ok()
    assert api.device == first
    assert count(rt, Browser) == 2


def test_the_value_is_kept_as_a_digest_and_nowhere_else(rt, remembered, user):
    [row] = rows(rt)
    assert row.digest != remembered.device
    waiting = remembered.stranger()
    waiting.set_cookie(DEVICE, remembered.device)
    configure(rt, auth_mfa_trusted_device_secs=0)
    start_login(waiting, user)
    assert remembered.device not in everything_in_redis(rt)


def test_neither_a_login_that_waits_nor_a_refusal_sets_it(api, user, enabled, trusting):
    answer = api.login(user)
    assert answer.set_cookies == {}
    token = answer.ok()["flow_token"]
    assert verify(api, token, enabled.app.wrong_code()).set_cookies == {}


def test_the_cookie_has_its_attributes(api, user):
    cookie = api.login(user).set_cookies[DEVICE]
    assert cookie.attributes == {
        "path": "/api/v1/auth",
        "max-age": str(400 * 86_400),
        "samesite": "Lax",
        "httponly": True,
    } | {"expires": cookie.attributes["expires"]}


def test_signing_out_leaves_the_browser_remembered(remembered, user):
    remembered.post("/auth/logout").ok()
    assert not is_asked(remembered, user)


def test_a_mailed_code_as_the_second_step_is_skipped_as_well(rt, remembered, user, enabled, clock):
    """It is asked for because of a setting, not of a factor that somebody added."""
    configure(rt, mail_smtp_host="localhost", mail_from_address="files@files.example")
    configure(rt, auth_email_code_login_enabled=True)
    configure(rt, auth_email_code_login_allow_totp_fallback=True)
    assert not is_asked(remembered, user)


def test_a_sign_in_by_a_provider_skips_it_too(rt, remembered, user, corp):
    provider, fake = corp
    link(rt, user, provider, subject=SUBJECT)
    answer = sign_in(remembered, fake)
    assert answer.headers["Location"] == "http://localhost/"
    asked = sign_in(remembered.stranger(), fake)
    assert "mfa=required" in asked.headers["Location"]
    assert f"remember_device_secs={MONTH}" in asked.headers["Location"]


# --- what voids it -------------------------------------------------------------------------------


def change_password(client, user, **_):
    body = {"current_password": user.password, "new_password": "another good password"}
    client.put("/auth/password", body).ok()
    return "another good password"


def reset_password(client, user, mailbox, **_):
    mailbox.read()
    client.post("/auth/password/reset/request", {"email": user.email}).ok()
    body = {"token": mailbox.token(mailbox.only()), "new_password": "another good password"}
    client.post("/auth/password/reset/confirm", body).ok()
    return "another good password"


def renew_recovery_codes(client, user, enabled, **_):
    client.post("/auth/mfa/recovery-codes/regenerate", {"code": enabled.app.wait()}).ok()


def remove_and_add_factor(client, user, enabled, rt, clock, **_):
    path = f"/auth/mfa/factors/{enabled.factor_id}"
    client.delete(path, {"code": enabled.app.wait()}).ok()
    give_totp(rt, user, clock)


def disable(client, user, line, **_):
    line.json("users", "disable", user.username)
    line.json("users", "enable", user.username)


def lock(client, user, rt, **_):
    client.post("/auth/lock").ok()
    change_user(rt, user, must_change_password=False)


def replay(client, user, **_):
    old = client.twin()
    client.refresh().ok()
    client.refresh().ok()
    old.refresh().fails(401, "auth.refresh_token_reuse_detected")


def reset_mfa(client, user, line, rt, clock, **_):
    line.json("users", "reset-mfa", user.username)
    give_totp(rt, user, clock)


def revoke_sessions(client, user, line, **_):
    line.json("users", "revoke-sessions", user.username)


def set_password(client, user, app, rt, **_):
    boss = ApiClient(app)
    boss.login(make_user(rt, username="boss", role="admin")).ok()
    body = {"password": "another good password"}
    boss.put(f"/admin/users/{user.id}/password", body).ok()
    return "another good password"


VOIDING = (
    change_password,
    reset_password,
    renew_recovery_codes,
    remove_and_add_factor,
    disable,
    lock,
    replay,
    reset_mfa,
    revoke_sessions,
    set_password,
)


@pytest.mark.parametrize("do", VOIDING, ids=lambda do: do.__name__)
def test_what_voids_it(rt, app, line, mailbox, remembered, user, enabled, clock, do):
    about = {"rt": rt, "app": app, "line": line, "mailbox": mailbox, "clock": clock}
    password = do(remembered, user, enabled=enabled, **about)
    [row] = rows(rt, user)
    assert (row.remembered_at, row.remembered_until) == (None, None)
    assert is_asked(remembered, user, password)


def test_a_new_factor_voids_what_a_mailed_code_had_granted(rt, api, user, trusting, clock):
    """Else the browser would skip a step that its owner has made stronger."""
    api.login(user).ok()
    with rt.transaction() as session:
        session.query(Browser).update(
            {"remembered_at": clock.now(), "remembered_until": clock.now()}
        )
    token, app = start_setup(api, clock)
    finish_setup(api, token, app.code()).ok()
    [row] = rows(rt, user)
    assert row.remembered_until is None


def test_signing_out_elsewhere_voids_all_browsers_but_this_one(remembered, user, enabled):
    other = remembered.stranger()
    trust(other, user, enabled)
    assert len(remembered.get(DEVICES).ok()) == 2
    remembered.delete("/auth/sessions/others").ok()
    [left] = remembered.get(DEVICES).ok()
    assert left["is_current"] is True
    assert not is_asked(remembered, user)
    assert is_asked(other, user)


def test_without_the_cookie_it_voids_all(remembered, user):
    other = remembered.twin()
    other.delete("/auth/sessions/others").ok()
    assert is_asked(remembered, user)


def test_ending_one_session_voids_nothing(remembered, user):
    [session] = remembered.get("/auth/sessions").ok()
    remembered.delete(f"/auth/sessions/{session['id']}").ok()
    assert not is_asked(remembered, user)


def test_deleting_the_account_leaves_nothing(rt, remembered, user):
    remembered.delete("/auth/account", {"confirm": user.username}).ok()
    assert count(rt, Browser) == 0


# --- the list ------------------------------------------------------------------------------------


def test_the_list_shows_what_is_remembered(api, user, enabled, trusting, clock):
    agent = "Mozilla/5.0 (Windows NT 10.0; rv:132.0) Gecko/20100101 Firefox/132.0"
    api.headers["User-Agent"] = agent
    granted = clock.now()
    trust(api, user, enabled)
    stranger = api.stranger()
    verify(stranger, start_login(stranger, user), enabled.app.wait()).ok()
    [shown] = api.get(DEVICES).ok()
    assert shown.pop("id") > 0
    created, expires = shown.pop("created_at"), shown.pop("expires_at")
    assert created <= shown.pop("last_used_at")
    assert (moment(expires) - moment(created)).total_seconds() == MONTH
    assert moment(created) >= granted
    assert shown == {"name": "Firefox on Windows", "is_current": True, "ip_address": "127.0.0.1"}
    [seen] = stranger.get(DEVICES).ok()
    assert seen["is_current"] is False


def test_one_is_removed(rt, remembered, user):
    [shown] = remembered.get(DEVICES).ok()
    assert remembered.delete(f"{DEVICES}/{shown['id']}").ok() is None
    remembered.delete(f"{DEVICES}/{shown['id']}").fails(404, "not_found")
    assert remembered.get(DEVICES).ok() == []
    assert is_asked(remembered, user)
    [entry] = audit_rows(rt, "user_mfa_device_remove")
    assert (entry.user_id, entry.entity_type, entry.entity_id) == (user.id, "browser", shown["id"])
    assert json.loads(entry.details) == {"removed_browsers": 1}


def test_all_are_removed(rt, remembered, user, enabled):
    other = remembered.stranger()
    trust(other, user, enabled)
    assert remembered.delete(DEVICES).ok() == {"removed": 2}
    assert remembered.delete(DEVICES).ok() == {"removed": 0}
    assert is_asked(remembered, user)
    assert is_asked(other, user)
    [entry] = audit_rows(rt, "user_mfa_device_remove")
    assert json.loads(entry.details) == {"removed_browsers": 2}


@pytest.mark.parametrize("which", ["0", "999999", "x", "-1"])
def test_an_unknown_one_is_not_found(remembered, which):
    remembered.delete(f"{DEVICES}/{which}").fails(404, "not_found")


def test_those_of_others_are_not_shown_and_not_removed(rt, app, remembered, user):
    [shown] = remembered.get(DEVICES).ok()
    other = ApiClient(app)
    other.login(make_user(rt)).ok()
    assert other.get(DEVICES).ok() == []
    other.delete(f"{DEVICES}/{shown['id']}").fails(404, "not_found")
    assert other.delete(DEVICES).ok() == {"removed": 0}
    assert not is_asked(remembered, user)


def test_removing_asks_for_a_confirmation_where_changes_do(rt, remembered, clock):
    [shown] = remembered.get(DEVICES).ok()
    configure(rt, auth_confirmation_max_age_secs=60)
    clock.advance(seconds=61)
    for path in (DEVICES, f"{DEVICES}/{shown['id']}"):
        remembered.delete(path).fails(412, "precondition_failed")


def test_what_skipped_the_step_and_what_was_granted_is_recorded(rt, remembered, user):
    granted = json.loads(audit_rows(rt, "user_mfa_challenge_success")[-1].details)
    assert granted["remember_device"] is True
    remembered.login(user).ok()
    skipped = json.loads(audit_rows(rt, "user_login")[-1].details)
    assert skipped == {
        "mfa_required": False,
        "remembered_browser": True,
        "password_change_required": False,
    }
    [latest, *_] = remembered.get("/auth/activity?action=user_login").ok()["items"]
    assert latest["details"]["remembered_browser"] is True


def test_the_export_has_the_browsers(remembered, user, enabled):
    other = remembered.stranger()
    verify(other, start_login(other, user), enabled.app.wait()).ok()
    exported = other.get("/auth/export").json["browsers"]
    assert [set(one) for one in exported] == [
        {"name", "ip_address", "first_seen_at", "last_seen_at", "remembered_until"}
    ] * 2
    assert [one["remembered_until"] is None for one in exported] == [True, False]


# --- how many ------------------------------------------------------------------------------------


def test_an_account_has_at_most_twenty_and_the_oldest_not_remembered_goes_first(
    rt, remembered, user, enabled, clock
):
    configure(rt, auth_new_browser_notice=False)
    [first] = rows(rt)
    for _ in range(20):
        clock.advance(minutes=1)
        stranger = remembered.stranger()
        verify(stranger, start_login(stranger, user), enabled.app.wait()).ok()
    kept = rows(rt)
    assert len(kept) == 20
    assert first.id in {row.id for row in kept}
    assert not is_asked(remembered, user)


def test_of_remembered_ones_the_oldest_goes(rt, remembered, user, enabled, clock, monkeypatch):
    monkeypatch.setattr(service, "MOST", 3)
    for _ in range(3):
        clock.advance(minutes=1)
        trust(remembered.stranger(), user, enabled)
    assert len(rows(rt)) == 3
    assert is_asked(remembered, user)


def rows(rt, user=None):
    with rt.reading() as session:
        found = session.query(Browser).order_by(Browser.id).all()
    return [row for row in found if user is None or row.user_id == user.id]
