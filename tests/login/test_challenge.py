"""The second step of a login."""

import json
import logging
import re

import pytest

from app.audit.models import Action, EntityType
from app.core.client import Client, SignInWish
from app.core.config import Argon2Cost, FailureLimit
from app.core.errors import DatabaseConnectionLost, DatabaseUnavailable
from app.crypto.passwords import Passwords
from app.login import completion, second_factor
from app.login.completion import (
    FirstFactor,
    FirstFactorKind,
    LoginOutcome,
    MfaRequired,
    complete_login,
)
from app.mfa import service as mfa
from app.mfa.models import MfaRecoveryCode
from app.sessions.models import LoginSession
from tests.support.api import ApiClient
from tests.support.challenge import everything_in_redis, give_totp, start_login, verify
from tests.support.factories import (
    PASSWORD,
    account_of,
    audit_rows,
    change_user,
    column_of,
    configure,
    count,
    delete_user,
    make_user,
)

INVALID = "auth.mfa_flow_invalid"
WRONG = "auth.mfa_code_invalid"
RECOVERY = "recovery_code"


def configure_mail(rt):
    configure(rt, mail_smtp_host="localhost", mail_from_address="files@files.example")


def fail(client, flow_token, enabled, times, **options):
    for _ in range(times):
        verify(client, flow_token, enabled.app.wrong_code(), **options).fails(401, WRONG)


def last_details(rt, action):
    return json.loads(audit_rows(rt, action)[-1].details)


# --- the first step ------------------------------------------------------------------------------


def test_a_login_with_totp_waits_for_the_second_step(rt, api, user, enabled):
    answer = api.login(user)
    data = answer.ok()
    assert re.fullmatch(r"mfa_[0-9a-f]{32}", data.pop("flow_token"))
    assert data == {
        "status": "mfa_required",
        "expires_in": 300,
        "methods": ["totp", "recovery_code"],
        "remember_device_secs": 0,
    }
    assert answer.set_cookies == {}
    assert count(rt, LoginSession) == 0
    api.me().fails(401, "auth.token_missing")


def test_the_first_step_is_audited_with_the_methods(rt, api, user, enabled):
    start_login(api, user, headers={"User-Agent": "curl"})
    [entry] = audit_rows(rt, "user_login")
    assert (entry.user_id, entry.entity_type, entry.user_agent) == (user.id, "auth_session", "curl")
    assert json.loads(entry.details) == {
        "mfa_required": True,
        "available_methods": ["totp", "recovery_code"],
    }


def test_without_unused_recovery_codes_they_are_not_offered(rt, api, user, enabled):
    with rt.transaction() as session:
        session.query(MfaRecoveryCode).update({"used_at": rt.clock.now()})
    assert api.login(user).ok()["methods"] == ["totp"]


@pytest.mark.parametrize(
    ("has_totp", "settings", "methods"),
    [
        (False, {}, ["email_code"]),
        (True, {}, ["totp", "recovery_code"]),
        (
            True,
            {"auth_email_code_login_allow_totp_fallback": True},
            ["totp", "recovery_code", "email_code"],
        ),
    ],
)
def test_email_codes_are_offered_when_they_are_switched_on(
    rt, api, user, has_totp, settings, methods
):
    configure_mail(rt)
    configure(rt, auth_email_code_login_enabled=True, **settings)
    if has_totp:
        give_totp(rt, user)
    assert api.login(user).ok()["methods"] == methods


def test_email_codes_are_not_asked_for_without_smtp_or_a_verified_address(rt, api, user):
    configure_mail(rt)
    configure(rt, auth_email_code_login_enabled=True)
    api.login(make_user(rt, verified=False)).ok()
    api.me().ok()
    configure(rt, mail_smtp_host="")
    assert api.login(user).ok()["status"] == "authenticated"


def test_the_login_waits_as_long_as_it_is_told(rt, api, user, enabled, clock):
    configure(rt, auth_mfa_flow_ttl_secs=20)
    assert api.login(user).ok()["expires_in"] == 20
    flow_token = start_login(api, user)
    clock.advance(seconds=20)
    verify(api, flow_token, enabled.app.code()).fails(401, "auth.mfa_flow_expired")


def test_a_wrong_password_tells_nothing_of_second_factors(api, user, enabled):
    api.login(user, "not the password").fails(401, "auth.credentials_failed")


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"status": "disabled"}, "auth.account_disabled"),
        ({"activated_at": None}, "auth.pending_activation"),
    ],
)
def test_a_closed_account_never_gets_to_the_second_step(rt, api, user, enabled, columns, code):
    change_user(rt, user, **columns)
    api.login(user).fails(403, code)


def test_redis_holds_no_secret_of_a_waiting_login(rt, api, user, enabled):
    old = Passwords(Argon2Cost(memory_kib=16, passes=1, lanes=1), 1).hash(user.password)
    change_user(rt, user, password_hash=old)
    flow_token = start_login(api, user)
    held = everything_in_redis(rt)
    assert "gatehouse:flow:mfa-login:" in held
    for secret in (flow_token, flow_token[4:], "argon2", user.password, enabled.app.secret):
        assert secret not in held


def test_a_hash_with_old_parameters_is_renewed_at_the_first_step(rt, api, user, enabled):
    old = Passwords(Argon2Cost(memory_kib=16, passes=1, lanes=1), 1).hash(user.password)
    change_user(rt, user, password_hash=old)
    flow_token = start_login(api, user)
    assert column_of(rt, user, "password_hash").startswith("$argon2id$v=19$m=8,t=1,p=1$")
    verify(api, flow_token, enabled.app.code()).ok()


def test_the_least_time_is_kept_for_a_login_that_waits(api, user, enabled, clock):
    clock.slept.clear()
    start_login(api, user)
    [slept] = clock.slept
    assert 0.35 <= slept <= 0.475


# --- which first factors need a second -----------------------------------------------------------


def proven(rt, user, kind):
    """Complete a login whose first factor is of this kind."""
    account = account_of(rt, user)
    factor = FirstFactor(kind, Action.USER_LOGIN, EntityType.AUTH_SESSION, "somebody")
    return complete_login(rt, account, factor, Client("198.51.100.1", "Firefox"), SignInWish())


def test_a_passkey_is_enough_by_itself(rt, user, enabled):
    assert isinstance(proven(rt, user, FirstFactorKind.PASSKEY), LoginOutcome)


def test_an_external_login_needs_the_second_step(rt, api, user, enabled):
    waiting = proven(rt, user, FirstFactorKind.EXTERNAL_AUTH)
    assert isinstance(waiting, MfaRequired)
    verify(api, waiting.flow_token, enabled.app.code()).ok()


def test_the_password_switch_is_nothing_to_an_external_login(rt, api, user, enabled):
    waiting = proven(rt, user, FirstFactorKind.EXTERNAL_AUTH)
    configure(rt, auth_password_login_enabled=False)
    verify(api, waiting.flow_token, enabled.app.code()).ok()


# --- success -------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_right_code_signs_in(rt, api, user, enabled):
    answer = verify(api, start_login(api, user), enabled.app.code())
    assert answer.ok() == {"status": "authenticated", "expires_in": 900}
    assert set(answer.set_cookies) == {
        "service_access",
        "service_refresh",
        "service_csrf",
        "service_device",
    }
    assert api.me().ok()["id"] == user.id
    api.refresh().ok()


def test_a_page_of_the_site_signs_in(browser, user, enabled):
    verify(browser, start_login(browser, user), enabled.app.code()).ok()
    browser.refresh().ok()


def test_the_session_is_that_of_the_first_steps_client(api, user, enabled):
    first = {"address": "198.51.100.1", "headers": {"User-Agent": "Firefox"}}
    flow_token = start_login(api, user, **first)
    second = {"address": "203.0.113.9", "headers": {"User-Agent": "curl"}}
    verify(api, flow_token, enabled.app.code(), **second).ok()
    [session] = api.get("/auth/sessions").ok()
    assert (session["ip_address"], session["user_agent"]) == ("198.51.100.1", "Firefox")


def test_a_success_is_audited(rt, api, user, enabled):
    flow_token = start_login(api, user)
    fail(api, flow_token, enabled, 2)
    verify(api, flow_token, enabled.app.code()).ok()
    [entry] = audit_rows(rt, "user_mfa_challenge_success")
    assert (entry.user_id, entry.entity_type, entry.entity_name) == (user.id, "mfa_factor", "totp")
    assert entry.entity_id == enabled.factor_id
    details = json.loads(entry.details)
    assert details.pop("flow_id") == last_details(rt, "user_mfa_challenge_failed")["flow_id"]
    assert details == {"method": "totp", "attempt_count": 2, "password_change_required": False}
    assert flow_token not in entry.details


def test_a_totp_code_marks_the_factor_as_used(rt, api, user, enabled, clock):
    flow_token = start_login(api, user)
    clock.advance(seconds=30)
    verify(api, flow_token, enabled.app.code()).ok()
    assert mfa.find_totp(rt, user.id).last_used_at == clock.now()


def test_a_clock_one_step_off_is_tolerated_and_no_more(api, user, enabled):
    for steps in (-2, 2):
        verify(api, start_login(api, user), enabled.app.code(steps)).fails(401, WRONG)
    for steps in (-1, 0, 1):
        verify(api, start_login(api, user), enabled.app.code(steps)).ok()


def test_a_totp_code_is_good_for_one_login(api, user, enabled):
    """Not even for another login that began before."""
    first, second = start_login(api, user), start_login(api, user)
    verify(api, first, enabled.app.code()).ok()
    verify(api, second, enabled.app.code()).fails(401, WRONG)
    verify(api, second, enabled.app.wait()).ok()


@pytest.mark.both_databases
def test_a_recovery_code_signs_in_once(rt, api, user, enabled, mailbox):
    first, second = start_login(api, user), start_login(api, user)
    code, other = enabled.recovery_codes[:2]
    verify(api, first, code, RECOVERY).ok()
    assert mailbox.only()["To"] == user.email
    verify(api, second, code, RECOVERY).fails(401, "auth.mfa_recovery_code_used")
    verify(api, second, other, RECOVERY).ok()
    assert count(rt, MfaRecoveryCode, MfaRecoveryCode.used_at.is_not(None)) == 2


def test_a_used_recovery_code_is_an_attempt(rt, api, user, enabled):
    code = enabled.recovery_codes[0]
    verify(api, start_login(api, user), code, RECOVERY).ok()
    flow_token = start_login(api, user)
    for _ in range(4):
        verify(api, flow_token, code, RECOVERY).fails(401, "auth.mfa_recovery_code_used")
    verify(api, flow_token, code, RECOVERY).fails(401, "auth.mfa_attempts_exceeded")


def test_a_forced_change_comes_after_the_second_step(rt, api, user, enabled):
    change_user(rt, user, must_change_password=True)
    flow_token = start_login(api, user)
    answer = verify(api, flow_token, enabled.app.code())
    assert answer.ok() == {"status": "password_change_required", "expires_in": 900}
    api.me().ok()
    api.get("/auth/sessions").fails(403, "auth.password_change_required")
    details = last_details(rt, "user_mfa_challenge_success")
    assert details["password_change_required"] is True


# --- the order of checks -------------------------------------------------------------------------


def test_a_token_nobody_was_given_is_invalid(api, user, enabled):
    tokens = ["", "  ", "mfa_", "mfa_" + 32 * "0", "mfs_" + 32 * "0", "x" * 1024, "\u00df"]
    codes = {token: verify(api, token, enabled.app.code()).code for token in tokens}
    assert codes == dict.fromkeys(tokens, INVALID)


def test_a_malformed_body_is_refused(api):
    for body in (
        {},
        {"flow_token": "a", "method": "totp"},
        {"flow_token": "a", "code": "123456"},
        {"method": "totp", "code": "123456"},
        {"flow_token": "a", "method": "sms", "code": "123456"},
        {"flow_token": "a", "method": "TOTP", "code": "123456"},
        {"flow_token": "a", "method": "totp", "code": 123456},
        {"flow_token": None, "method": "totp", "code": "123456"},
    ):
        answer = api.post("/auth/mfa/challenge/verify", body)
        assert (answer.status, answer.code) == (400, "bad_request"), body


def test_a_login_is_finished_once(api, user, enabled, clock):
    flow_token = start_login(api, user)
    verify(api, flow_token, enabled.app.code()).ok()
    verify(api, flow_token, enabled.app.wait()).fails(401, INVALID)
    clock.advance(seconds=301)  # also when its time is over
    verify(api, flow_token, enabled.app.code()).fails(401, INVALID)


def test_a_login_expires_after_five_minutes(api, user, enabled, clock):
    last_moment, too_late = start_login(api, user), start_login(api, user)
    clock.advance(seconds=299)
    verify(api, last_moment, enabled.app.code()).ok()
    clock.advance(seconds=1)
    for _ in range(6):
        verify(api, too_late, enabled.app.code()).fails(401, "auth.mfa_flow_expired")


def test_the_password_switch_is_looked_at_again(rt, api, user, enabled):
    flow_token = start_login(api, user)
    configure(rt, auth_password_login_enabled=False)
    for code in (enabled.app.code(), enabled.app.wrong_code()) * 3:
        verify(api, flow_token, code).fails(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    fail(api, flow_token, enabled, 4)
    verify(api, flow_token, enabled.app.code()).ok()


@pytest.mark.parametrize(
    ("columns", "undo", "code"),
    [
        ({"status": "disabled"}, {"status": "active"}, "auth.account_disabled"),
        ({"activated_at": None}, None, "auth.pending_activation"),
    ],
)
def test_a_closed_account_is_refused_without_an_attempt(
    rt, api, user, enabled, clock, columns, undo, code
):
    flow_token = start_login(api, user)
    change_user(rt, user, **columns)
    for typed in (enabled.app.code(), enabled.app.wrong_code()) * 3:
        verify(api, flow_token, typed).fails(403, code)
    change_user(rt, user, **(undo or {"activated_at": clock.now()}))
    fail(api, flow_token, enabled, 4)
    verify(api, flow_token, enabled.app.code()).ok()


def test_the_checks_come_in_the_documented_order(rt, api, user, enabled, clock):
    flow_token, expired = start_login(api, user), start_login(api, user)
    change_user(rt, user, session_version=99, status="disabled", activated_at=None)
    configure(rt, auth_password_login_enabled=False)

    def refused(status, code):
        verify(api, flow_token, enabled.app.wrong_code()).fails(status, code)

    refused(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    refused(403, "auth.account_disabled")
    change_user(rt, user, status="active")
    refused(403, "auth.pending_activation")
    change_user(rt, user, activated_at=clock.now())
    refused(401, INVALID)
    change_user(rt, user, session_version=99, status="disabled")
    configure(rt, auth_password_login_enabled=False)
    clock.advance(seconds=300)
    verify(api, expired, enabled.app.code()).fails(401, "auth.mfa_flow_expired")
    assert audit_rows(rt, "user_mfa_challenge_failed") == []


def test_an_unverified_address_does_not_matter_to_an_activated_account(rt, api, user, enabled):
    flow_token = start_login(api, user)
    change_user(rt, user, email_verified_at=None)
    verify(api, flow_token, enabled.app.code()).ok()


def test_a_changed_password_ends_waiting_logins(rt, api, user, enabled):
    flow_token = start_login(api, user)
    owner = api.stranger()
    verify(owner, start_login(owner, user), enabled.app.code()).ok()
    body = {"current_password": user.password, "new_password": "another good one"}
    owner.put("/auth/password", body).ok()
    verify(api, flow_token, enabled.app.wait()).fails(401, INVALID)


def test_a_reset_password_ends_waiting_logins(api, user, enabled, mailbox):
    flow_token = start_login(api, user)
    api.post("/auth/password/reset/request", {"email": user.email}).ok()
    body = {"token": mailbox.token(mailbox.only()), "new_password": PASSWORD}
    api.post("/auth/password/reset/confirm", body).ok()
    verify(api, flow_token, enabled.app.code()).fails(401, INVALID)


def test_a_deleted_account_has_no_waiting_login(rt, api, user, enabled):
    flow_token = start_login(api, user)
    delete_user(rt, user)
    verify(api, flow_token, enabled.app.code()).fails(401, INVALID)


@pytest.mark.parametrize("method", ["totp", RECOVERY])
@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"status": "disabled"}, 403, "auth.account_disabled"),
        ({"session_version": 99}, 401, INVALID),
        (None, 401, INVALID),
    ],
)
def test_a_change_at_the_very_last_moment_is_noticed(
    rt, api, user, enabled, monkeypatch, change, status, code, method
):
    typed = enabled.app.code() if method == "totp" else enabled.recovery_codes[0]
    name = "check_totp" if method == "totp" else "check_recovery_code"
    real = getattr(second_factor.mfa, name)

    def changed_after_the_look(*arguments):
        proof = real(*arguments)
        delete_user(rt, user) if change is None else change_user(rt, user, **change)
        return proof

    monkeypatch.setattr(second_factor.mfa, name, changed_after_the_look)
    flow_token = start_login(api, user)
    verify(api, flow_token, typed, method).fails(status, code)
    assert count(rt, LoginSession) == 0


def test_removing_the_factor_ends_waiting_logins(rt, api, user, enabled):
    flow_token = start_login(api, user)
    owner = api.stranger()
    verify(owner, start_login(owner, user), enabled.app.code()).ok()
    path = f"/auth/mfa/factors/{enabled.factor_id}"
    owner.delete(path, {"code": enabled.recovery_codes[0]}).ok()
    verify(api, flow_token, enabled.app.wait()).fails(401, INVALID)


# --- attempts ------------------------------------------------------------------------------------


def test_the_fifth_wrong_code_ends_the_login(api, user, enabled, clock):
    flow_token = start_login(api, user)
    fail(api, flow_token, enabled, 4)
    answer = verify(api, flow_token, enabled.app.wrong_code())
    answer.fails(401, "auth.mfa_attempts_exceeded")
    assert answer.set_cookies == {}
    for code in (enabled.app.code(), enabled.app.wrong_code()):
        verify(api, flow_token, code).fails(401, INVALID)
    clock.advance(seconds=301)  # it did not just wait for the end of its time
    verify(api, flow_token, enabled.app.code()).fails(401, INVALID)


def test_the_fifth_attempt_may_still_succeed(api, user, enabled):
    flow_token = start_login(api, user)
    fail(api, flow_token, enabled, 4)
    verify(api, flow_token, enabled.app.code()).ok()


def test_attempts_of_every_method_count_together(api, user, enabled):
    flow_token = start_login(api, user)
    fail(api, flow_token, enabled, 2)
    for _ in range(2):
        verify(api, flow_token, "AAAA-BBBB-CCCC", RECOVERY).fails(401, WRONG)
    answer = verify(api, flow_token, "AAAA-BBBB-CCCC", RECOVERY)
    answer.fails(401, "auth.mfa_attempts_exceeded")


@pytest.mark.parametrize("method", ["totp", "recovery_code", "email_code"])
def test_a_code_of_the_wrong_shape_is_a_wrong_code(api, user, enabled, method):
    flow_token = start_login(api, user)
    for code in ("", "12345", "1234567", "一二三四五六"):
        answer = verify(api, flow_token, code, method)
        assert (answer.status, answer.code) == (401, WRONG), code
    verify(api, flow_token, "1" * 1024, method).fails(401, "auth.mfa_attempts_exceeded")


@pytest.mark.parametrize(("method", "code"), [("totp", "123456"), ("email_code", "12345678")])
def test_a_method_the_account_does_not_have_spends_no_attempt(rt, api, user, method, code):
    configure_mail(rt)
    configure(rt, auth_email_code_login_enabled=True)
    if method == "email_code":
        enabled = give_totp(rt, user)
    flow_token = start_login(api, user)
    for _ in range(12):
        verify(api, flow_token, code, method).fails(401, "auth.mfa_factor_required")
    if method == "email_code":
        fail(api, flow_token, enabled, 4)
        verify(api, flow_token, enabled.app.code()).ok()
    assert len(audit_rows(rt, "user_mfa_challenge_failed")) == (4 if method == "email_code" else 0)


def test_the_shape_is_looked_at_before_the_method(rt, api, user):
    configure_mail(rt)
    configure(rt, auth_email_code_login_enabled=True)
    flow_token = start_login(api, user)
    for code in ("", "12345", "ABCD-EFGH-2345"):
        verify(api, flow_token, code).fails(401, WRONG)
    verify(api, flow_token, "123456").fails(401, "auth.mfa_factor_required")


def test_a_factor_added_meanwhile_counts_from_now_on(rt, api, user):
    """The methods are those of now, not those of the first step."""
    configure_mail(rt)
    configure(rt, auth_email_code_login_enabled=True)
    flow_token = start_login(api, user)
    enabled = give_totp(rt, user)
    verify(api, flow_token, "12345678", "email_code").fails(401, "auth.mfa_factor_required")
    verify(api, flow_token, enabled.app.code()).ok()


def test_logins_have_attempts_of_their_own(api, user, enabled):
    first, second = start_login(api, user), start_login(api, user)
    fail(api, first, enabled, 4)
    verify(api, second, enabled.app.code()).ok()


def test_failures_are_audited_under_the_logins_user(rt, api, user, enabled):
    flow_token = start_login(api, user)
    fail(api, flow_token, enabled, 4)
    verify(api, flow_token, "AAAA-BBBB-CCCC", RECOVERY, headers={"User-Agent": "curl"})
    entries = audit_rows(rt, "user_mfa_challenge_failed")
    assert {(e.user_id, e.entity_type, e.entity_id) for e in entries} == {
        (user.id, "mfa_factor", None)
    }
    assert [e.entity_name for e in entries] == ["totp"] * 4 + ["recovery_code"]
    assert entries[-1].user_agent == "curl"
    told = [json.loads(entry.details) for entry in entries]
    assert len({details.pop("flow_id") for details in told}) == 1
    assert told == [
        *(
            {"method": "totp", "attempt_count": number, "failure_reason": WRONG}
            for number in (1, 2, 3, 4)
        ),
        {
            "method": "recovery_code",
            "attempt_count": 5,
            "failure_reason": "auth.mfa_attempts_exceeded",
        },
    ]


# --- guessing across logins -------------------------------------------------


def test_new_logins_give_no_more_guesses_than_the_accounts_limit(api, user, enabled):
    """Ten guesses in all, however many logins are opened with the right password."""
    third, *others = [start_login(api, user) for _ in range(12)]
    for flow_token in others[:2]:
        fail(api, flow_token, enabled, 4)
        answer = verify(api, flow_token, enabled.app.wrong_code())
        answer.fails(401, "auth.mfa_attempts_exceeded")
    for flow_token in (third, *others[2:]):
        answer = verify(api, flow_token, enabled.app.code()).fails(429, "rate_limited")
        assert answer.retry_after == 300
    api.login(user).fails(429, "rate_limited")


def test_a_right_password_is_no_failure(api, user, enabled):
    """Whoever closes the browser before the second step, again and again, is not locked out."""
    for _ in range(15):
        flow_token = start_login(api, user)
    verify(api, flow_token, enabled.app.code()).ok()


def test_a_refused_guess_spends_no_attempt_of_the_login(make_app, clock):
    app = make_app(failure_limit=FailureLimit(attempts=4, window_seconds=7))
    rt, api = app.extensions["gatehouse"], ApiClient(app)
    user = make_user(rt)
    enabled = give_totp(rt, user, clock)
    flow_token = start_login(api, user)
    for _ in range(3):
        fail(api, start_login(api, user), enabled, 1)
    fail(api, flow_token, enabled, 1)
    for _ in range(6):
        verify(api, flow_token, enabled.app.code()).fails(429, "rate_limited")
    clock.advance(seconds=7)
    fail(api, flow_token, enabled, 3)
    verify(api, flow_token, enabled.app.code()).ok()


def test_guesses_at_the_code_count_at_the_password_and_the_other_way_round(api, user, enabled):
    for _ in range(8):
        api.login(user, "not the password").fails(401, "auth.credentials_failed")
    flow_token = start_login(api, user)
    fail(api, flow_token, enabled, 2)
    verify(api, flow_token, enabled.app.code()).fails(429, "rate_limited")
    api.login(user, "not the password").fails(429, "rate_limited")


def of_one_subscriber(number):
    """Return where one of the 65,536 networks of an IPv6 /48 is."""
    return {"address": f"2001:db8:1:{number:x}::1"}


def test_the_networks_of_one_ipv6_subscriber_have_ten_times_the_guesses_together(make_app, clock):
    app = make_app(failure_limit=FailureLimit(attempts=2, window_seconds=300))
    rt, api = app.extensions["gatehouse"], ApiClient(app)
    user = make_user(rt)
    enabled = give_totp(rt, user, clock)
    here = of_one_subscriber(10)
    waiting = start_login(api, user, **here)
    for number in range(10):
        network = of_one_subscriber(number)
        fail(api, start_login(api, user, **network), enabled, 2, **network)
    verify(api, waiting, enabled.app.code(), **here).fails(429, "rate_limited")
    api.login(user, **here).fails(429, "rate_limited")
    verify(api, waiting, enabled.app.code(), address="2001:db8:2::1").ok()
    api.login(user, "not the password", **here).fails(401, "auth.credentials_failed")


def test_what_is_no_guess_is_not_counted_at_the_subscriber_either(make_app, clock):
    app = make_app(failure_limit=FailureLimit(attempts=1, window_seconds=300))
    rt, api = app.extensions["gatehouse"], ApiClient(app)
    user = make_user(rt)
    enabled = give_totp(rt, user, clock)
    flow_token = start_login(api, user)
    configure(rt, auth_password_login_enabled=False)
    for number in range(11):
        answer = verify(api, flow_token, enabled.app.code(), **of_one_subscriber(number))
        answer.fails(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    verify(api, flow_token, enabled.app.code(), **of_one_subscriber(11)).ok()


def test_a_complete_login_clears_the_count(api, user, enabled):
    flow_token = start_login(api, user)
    fail(api, flow_token, enabled, 4)
    verify(api, flow_token, enabled.app.code()).ok()
    for _ in range(10):
        api.login(user, "not the password").fails(401, "auth.credentials_failed")


def test_a_complete_login_clears_the_count_at_both_steps_networks(api, user, enabled):
    here, there = {"address": "198.51.100.1"}, {"address": "203.0.113.9"}
    for network in (here, there):
        api.login(user, "not the password", **network).fails(401, "auth.credentials_failed")
    flow_token = start_login(api, user, **here)
    verify(api, flow_token, enabled.app.code(), **there).ok()
    for network in (here, there):
        for _ in range(10):
            api.login(user, "not the password", **network).fails(401, "auth.credentials_failed")


def test_the_log_tells_that_codes_are_refused(api, user, enabled, caplog):
    caplog.set_level(logging.WARNING)
    flow_token = start_login(api, user)
    for _ in range(10):
        api.login(user, "not the password").fails(401, "auth.credentials_failed")
    verify(api, flow_token, enabled.app.code()).fails(429, "rate_limited")
    [line] = [r for r in caplog.records if r.name == "app.store.limits"]
    assert line.user_id == user.id


def test_the_first_step_alone_clears_nothing(api, user, enabled):
    for _ in range(9):
        api.login(user, "not the password").fails(401, "auth.credentials_failed")
    start_login(api, user)
    start_login(api, user)
    api.login(user, "not the password").fails(401, "auth.credentials_failed")
    api.login(user).fails(429, "rate_limited")


# --- all or nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["totp", RECOVERY])
def test_a_failed_transaction_leaves_login_and_code_as_they_were(
    rt, api, user, enabled, monkeypatch, mailbox, method
):
    code = enabled.app.code() if method == "totp" else enabled.recovery_codes[0]
    flow_token = start_login(api, user)

    def fail_to_open(*_, **__):
        raise DatabaseUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(completion.sessions, "open_session", fail_to_open)
        for _ in range(6):  # nor is an attempt spent
            verify(api, flow_token, code, method).fails(503, "database.error")
    assert audit_rows(rt, "user_mfa_challenge_success") == []
    assert mailbox.read() == []
    verify(api, flow_token, code, method).ok()


def test_a_code_whose_session_was_opened_unnoticed_opens_no_second_one(
    rt, api, user, enabled, monkeypatch
):
    """The answer of the database was lost: the login goes on, but not with this code."""
    flow_token, code = start_login(api, user), enabled.app.code()
    real = completion.open_session

    def lose_the_answer(*arguments, **options):
        real(*arguments, **options)
        raise DatabaseConnectionLost

    with monkeypatch.context() as patch:
        patch.setattr(completion, "open_session", lose_the_answer)
        answer = verify(api, flow_token, code).fails(503, "database.error")
    assert answer.set_cookies == {}
    verify(api, flow_token, code).fails(401, WRONG)
    assert count(rt, LoginSession) == 1
    verify(api, flow_token, enabled.app.wait()).ok()


@pytest.mark.parametrize(
    ("method", "module", "reading"),
    [
        ("totp", mfa, "find_totp"),
        (RECOVERY, second_factor.mfa, "check_recovery_code"),
    ],
)
def test_who_is_overtaken_at_the_same_login_has_mistyped_nothing(
    rt, app, api, user, enabled, monkeypatch, method, module, reading
):
    code = enabled.app.code() if method == "totp" else enabled.recovery_codes[0]
    flow_token, real = start_login(api, user), getattr(module, reading)

    def overtaken(*arguments):
        monkeypatch.setattr(module, reading, real)
        verify(ApiClient(app), flow_token, code, method).ok()
        return real(*arguments)

    monkeypatch.setattr(module, reading, overtaken)
    verify(api, flow_token, code, method).fails(401, INVALID)
    assert audit_rows(rt, "user_mfa_challenge_failed") == []
    assert count(rt, LoginSession) == 1


@pytest.mark.parametrize("attempts_before", [0, 4])
@pytest.mark.parametrize("method", ["totp", RECOVERY])
def test_a_code_used_elsewhere_this_very_moment_is_a_wrong_one(
    rt, app, api, user, enabled, monkeypatch, method, attempts_before
):
    code = enabled.app.code() if method == "totp" else enabled.recovery_codes[0]
    name = "check_totp" if method == "totp" else "check_recovery_code"
    real = getattr(second_factor.mfa, name)
    flow_token, rival_token = start_login(api, user), start_login(api, user)
    fail(api, flow_token, enabled, attempts_before)

    def overtaken(*arguments):
        proof = real(*arguments)
        monkeypatch.setattr(second_factor.mfa, name, real)
        verify(ApiClient(app), rival_token, code, method).ok()
        return proof

    monkeypatch.setattr(second_factor.mfa, name, overtaken)
    answer = verify(api, flow_token, code, method)
    if attempts_before:
        answer.fails(401, "auth.mfa_attempts_exceeded")
        verify(api, flow_token, enabled.app.wait()).fails(401, INVALID)
    else:
        answer.fails(401, WRONG if method == "totp" else "auth.mfa_recovery_code_used")
        verify(api, flow_token, enabled.app.wait()).ok()
    assert count(rt, LoginSession) == (1 if attempts_before else 2)
