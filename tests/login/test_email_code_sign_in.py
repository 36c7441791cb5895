"""Signing in with a code by e-mail instead of a password."""

import json
import re
from datetime import timedelta

import pytest

from app.core.errors import DatabaseConnectionLost, DatabaseUnavailable
from app.login import completion
from app.mail import dispatcher
from app.sessions.models import LoginSession
from tests.support.api import ORIGIN, ApiClient
from tests.support.challenge import everything_in_redis, give_totp, send_code, verify, wrong
from tests.support.email_code import (
    FINISH,
    START,
    finish,
    mailed_code,
    mails,
    start,
    switch_on,
)
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    configure,
    count,
    delete_user,
    make_user,
)
from tests.support.mailbox import html_of, text_of
from tests.support.outbox import use_smtp
from tests.support.passkeys import Authenticator, register
from tests.support.smtp import RecordingSmtpServer

WRONG = 401, "auth.mfa_code_invalid"
EXCEEDED = 401, "auth.mfa_attempts_exceeded"
INVALID = 401, "auth.mfa_flow_invalid"
EXPIRED = 401, "auth.mfa_flow_expired"
CLOSED = 403, "forbidden"


@pytest.fixture(autouse=True)
def switched_on(rt):
    switch_on(rt)


# --- success -------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_the_code_from_the_mail_signs_in(rt, api, user):
    started = api.post(START, {"email": f" {user.email.upper()} "}).ok()
    assert started.pop("flow_token").startswith("emc_")
    assert started == {"expires_in": 600, "resend_after": 60}
    flow_token, code = mailed_code(rt, api, make_user(rt))
    assert finish(api, flow_token, code).ok() == {"status": "authenticated", "expires_in": 900}
    api.me().ok()


def test_the_mail_is_in_the_language_of_the_browser_that_asks(rt, api, user):
    start(api, user.email, headers={"Accept-Language": "de"})
    [mail] = mails(rt)
    assert (mail["lang"], mail["good_for"]) == ("de", "10 Minuten")


def test_the_mail_leaves_by_the_outbox_and_says_never_to_pass_the_code_on(rt, api, user):
    with RecordingSmtpServer() as sink:
        use_smtp(rt, sink.port)
        flow_token = start(api, user.email)
        assert sink.received == []
        dispatcher.drain(rt)
        [mail] = sink.received
    assert mail.recipients == [user.email]
    text = text_of(mail.message)
    [code] = re.findall(r"\b\d{8}\b", text)
    assert code in html_of(mail.message)
    assert "10 minutes" in text
    assert "Never give it to anybody: we never ask for it" in text
    finish(api, flow_token, code).ok()


def test_a_code_may_be_typed_as_it_is_read(rt, api, user):
    flow_token, code = mailed_code(rt, api, user)
    finish(api, f" {flow_token}\n", f" {code[:4]} {code[4:]}\n").ok()


def test_a_mail_that_comes_too_late_is_not_sent(rt, api, user, clock):
    with RecordingSmtpServer() as sink:
        use_smtp(rt, sink.port)
        start(api, user.email)
        clock.advance(minutes=10)
        dispatcher.drain(rt)
        assert sink.received == []


def test_the_sign_in_is_recorded(rt, api, user):
    finish(api, *mailed_code(rt, api, user), headers={"User-Agent": "curl"}).ok()
    [entry] = audit_rows(rt, "user_email_code_sign_in")
    assert (entry.user_id, entry.entity_type, entry.entity_name) == (
        user.id,
        "auth_session",
        user.username,
    )
    assert entry.user_agent == "curl"
    assert json.loads(entry.details) == {"mfa_required": False, "password_change_required": False}


def test_the_session_counts_as_confirmed_just_now(rt, api, user):
    finish(api, *mailed_code(rt, api, user)).ok()
    assert api.get("/auth/confirmation").ok()["is_fresh"] is True


def test_a_forced_change_comes_after_the_code(rt, api, user):
    change_user(rt, user, must_change_password=True)
    answer = finish(api, *mailed_code(rt, api, user))
    assert answer.ok()["status"] == "password_change_required"


def test_it_works_while_passwords_are_off_and_for_an_account_without_one(rt, api):
    configure(rt, auth_password_login_enabled=False)
    finish(api, *mailed_code(rt, api, make_user(rt, password=None))).ok()


@pytest.mark.parametrize("proven", [False, True])
def test_the_typed_code_proves_the_address(rt, api, user, clock, proven):
    before = clock.now() - timedelta(days=1)
    change_user(rt, user, proven_at=before if proven else None)
    flow_token, code = mailed_code(rt, api, user)
    assert column_of(rt, user, "proven_at") == (before if proven else None)
    finish(api, flow_token, code).ok()
    assert column_of(rt, user, "proven_at") == (before if proven else clock.now())


# --- the second step -----------------------------------------------------------------------------


def test_an_authenticator_app_is_asked_for_and_never_another_mail(rt, api, user, clock):
    configure(
        rt,
        auth_email_code_login_enabled=True,
        auth_email_code_login_allow_totp_fallback=True,
    )
    enabled = give_totp(rt, user, clock)
    change_user(rt, user, proven_at=None)
    answer = finish(api, *mailed_code(rt, api, user))
    data = answer.ok()
    assert answer.set_cookies == {}
    assert (data["status"], data["methods"]) == ("mfa_required", ["totp", "recovery_code"])
    send_code(api, data["flow_token"]).fails(401, "auth.mfa_factor_required")
    verify(api, data["flow_token"], "12345678", "email_code").fails(401, "auth.mfa_factor_required")
    assert column_of(rt, user, "proven_at") is None
    verify(api, data["flow_token"], enabled.app.code()).ok()
    assert column_of(rt, user, "proven_at") == clock.now()
    [entry] = audit_rows(rt, "user_email_code_sign_in")
    assert json.loads(entry.details)["mfa_required"] is True


def test_the_second_step_proves_no_address_that_came_meanwhile(rt, api, user, clock):
    enabled = give_totp(rt, user, clock)
    change_user(rt, user, proven_at=None)
    flow_token = finish(api, *mailed_code(rt, api, user)).ok()["flow_token"]
    change_user(rt, user, email="other@example.com")
    verify(api, flow_token, enabled.app.code()).ok()
    assert column_of(rt, user, "proven_at") is None


def test_without_an_app_no_second_step_follows(rt, api, user):
    configure(rt, auth_email_code_login_enabled=True)
    assert api.login(user).ok()["status"] == "mfa_required"
    assert finish(api, *mailed_code(rt, api, user)).ok()["status"] == "authenticated"


@pytest.mark.parametrize("remember", [True, False])
def test_what_finish_says_of_staying_signed_in_counts(rt, api, user, clock, remember):
    outlasts = {"service_access": remember, "service_csrf": remember, "service_refresh": remember}
    body = dict(zip(("flow_token", "code"), mailed_code(rt, api, user), strict=True))
    answer = api.post(FINISH, {**body, "remember": remember})
    assert lasting(answer).items() >= outlasts.items()
    enabled = give_totp(rt, user, clock)
    clock.advance(minutes=1)
    body = dict(zip(("flow_token", "code"), mailed_code(rt, api, user), strict=True))
    pending = api.post(FINISH, {**body, "remember": remember}).ok()["flow_token"]
    answer = verify(api, pending, enabled.app.code())
    assert lasting(answer).items() >= outlasts.items()


def lasting(answer):
    """Return which cookies outlast the browser's window."""
    cookies = answer.ok() and answer.set_cookies
    return {name: "max-age" in cookie.attributes for name, cookie in cookies.items()}


@pytest.mark.parametrize("remember", [None, "yes", 1])
def test_staying_signed_in_is_true_or_false(api, remember):
    body = {"flow_token": "emc_1", "code": "1", "remember": remember}
    api.post(FINISH, body).fails(400, "bad_request")


def test_a_remembered_browser_skips_the_app_and_its_session_is_unconfirmed(rt, api, user, clock):
    configure(rt, auth_mfa_trusted_device_secs=86400)
    enabled = give_totp(rt, user, clock)
    data = finish(api, *mailed_code(rt, api, user)).ok()
    assert data["remember_device_secs"] == 86400
    body = {"flow_token": data["flow_token"], "method": "totp", "code": enabled.app.code()}
    api.post("/auth/mfa/challenge/verify", {**body, "remember_device": True}).ok()
    clock.advance(minutes=1)
    finish(api, *mailed_code(rt, api, user)).ok()
    assert api.get("/auth/confirmation").ok()["is_fresh"] is False


def test_switched_off_between_the_steps_nothing_goes_on(rt, api, user, clock):
    enabled = give_totp(rt, user, clock)
    flow_token = finish(api, *mailed_code(rt, api, user)).ok()["flow_token"]
    configure(rt, auth_email_code_sign_in_enabled=False)
    verify(api, flow_token, enabled.app.code()).fails(*CLOSED)


# --- who gets no mail ----------------------------------------------------------------------------


@pytest.fixture(params=["unknown", "unverified", "disabled", "pending", "paused"])
def dead_address(request, rt, api):
    if request.param == "unknown":
        return "nobody@example.com"
    columns = {
        "unverified": {"verified": False},
        "disabled": {"status": "disabled"},
        "pending": {"activated": False},
        "paused": {},
    }
    found = make_user(rt, **columns[request.param])
    if request.param == "paused":
        start(api, found.email)
    return found.email


def test_an_address_without_a_mail_gets_the_same_answers(rt, api, clock, dead_address):
    before = len(mails(rt))
    started = api.post(START, {"email": dead_address}).ok()
    flow_token = started.pop("flow_token")
    assert re.fullmatch(r"emc_[0-9a-f]{32}", flow_token)
    assert started == {"expires_in": 600, "resend_after": 60}
    assert len(mails(rt)) == before
    for _ in range(4):
        finish(api, flow_token, "12345678").fails(*WRONG)
    finish(api, flow_token, "12345678").fails(*EXCEEDED)
    finish(api, flow_token, "12345678").fails(*INVALID)
    late = start(api, dead_address)
    clock.advance(minutes=10)
    finish(api, late, "12345678").fails(*EXPIRED)
    assert count(rt, LoginSession) == 0


def test_a_wrong_code_of_an_account_gets_these_answers_too(rt, api, user, clock):
    flow_token, code = mailed_code(rt, api, user)
    for bad in (wrong(code), "", "abc", code[:7]):
        finish(api, flow_token, bad).fails(*WRONG)
    finish(api, flow_token, wrong(code)).fails(*EXCEEDED)
    finish(api, flow_token, code).fails(*INVALID)
    clock.advance(minutes=1)
    late, code = mailed_code(rt, api, user)
    clock.advance(minutes=10)
    finish(api, late, code).fails(*EXPIRED)


def test_refused_codes_are_shown_to_the_owner(rt, api, user):
    flow_token, code = mailed_code(rt, api, user)
    finish(api, flow_token, wrong(code)).fails(*WRONG)
    [entry] = audit_rows(rt, "user_login_failed")
    assert (entry.user_id, json.loads(entry.details)) == (user.id, {"method": "email_code"})


@pytest.mark.parametrize("email", ["", "nonsense", "a@b@c"])
def test_what_is_no_address_is_refused(api, email):
    api.post(START, {"email": email}).fails(400, "bad_request")


@pytest.mark.parametrize("flow_token", ["", "emc_" + 32 * "0", "mfa_" + 32 * "0"])
def test_an_unknown_flow_is_invalid(api, flow_token):
    finish(api, flow_token, "12345678").fails(*INVALID)


@pytest.mark.parametrize("path", [START, FINISH])
def test_pages_of_other_sites_are_refused(browser, path):
    headers = {"Origin": "https://evil.example"}
    browser.post(path, {}, headers=headers).fails(403, "auth.request_origin_untrusted")


@pytest.mark.parametrize("path", [START, FINISH])
def test_no_answer_comes_sooner_than_another(make_app, clock, path):
    ApiClient(make_app(response_floor_ms=350)).post(path, {}).fails(400, "bad_request")
    assert len(clock.slept) == 1
    assert 0.35 <= clock.slept[0] <= 0.475


# --- pauses and limits ---------------------------------------------------------------------------


def test_a_pause_is_the_accounts_and_the_networks(rt, api, user, clock):
    configure(rt, auth_email_code_login_resend_cooldown_secs=7)
    first, code = mailed_code(rt, api, user)
    assert api.post(START, {"email": user.email}).ok()["resend_after"] == 7
    assert len(mails(rt)) == 1
    mailed_code(rt, api, user, address="198.51.100.1")
    mailed_code(rt, api, make_user(rt))
    clock.advance(seconds=7)
    second, newer = mailed_code(rt, api, user)
    finish(api, first, newer).fails(*WRONG)
    finish(api, first, code).ok()
    finish(api, second, newer).ok()


def test_an_address_gets_ten_mails_an_hour(rt, api, user, clock):
    configure(rt, auth_email_code_login_resend_cooldown_secs=1)
    for _ in range(12):
        start(api, user.email)
        clock.advance(seconds=2)
    assert len(mails(rt)) == 10
    clock.advance(minutes=6)
    mailed_code(rt, api, user)


def test_wrong_codes_count_with_the_accounts_failures(rt, api, user, clock):
    for _ in range(2):
        flow_token, code = mailed_code(rt, api, user)
        for _ in range(4):
            finish(api, flow_token, wrong(code)).fails(*WRONG)
        finish(api, flow_token, wrong(code)).fails(*EXCEEDED)
        clock.advance(seconds=60)
    flow_token, code = mailed_code(rt, api, user)
    finish(api, flow_token, code).fails(429, "rate_limited")
    api.login(user).fails(429, "rate_limited")
    finish(api, flow_token, code, address="198.51.100.1").ok()
    clock.advance(minutes=5)
    finish(api, flow_token, code).fails(*INVALID)


def test_those_of_an_unknown_address_count_by_it(rt, api, clock):
    for _ in range(2):
        flow_token = start(api, "nobody@example.com")
        for _ in range(5):
            finish(api, flow_token, "12345678")
    finish(api, start(api, "Nobody@Example.com"), "12345678").fails(429, "rate_limited")
    body = {"identifier": "nobody@example.com", "password": "not the password"}
    api.post("/auth/login", body).fails(429, "rate_limited")
    finish(api, start(api, "nobody2@example.com"), "12345678").fails(*WRONG)


def test_a_sign_in_forgets_the_failures_and_a_first_step_does_not(rt, api, user, clock):
    flow_token, code = mailed_code(rt, api, user)
    for _ in range(4):
        finish(api, flow_token, wrong(code)).fails(*WRONG)
    finish(api, flow_token, code).ok()
    enabled = give_totp(rt, user, clock)
    for _ in range(8):
        api.login(user, password="not the password").fails(401, "auth.credentials_failed")
    clock.advance(seconds=60)
    pending = finish(api, *mailed_code(rt, api, user)).ok()["flow_token"]
    verify(api, pending, enabled.app.wrong_code()).fails(*WRONG)
    verify(api, pending, enabled.app.wrong_code()).fails(*WRONG)
    verify(api, pending, enabled.app.code()).fails(429, "rate_limited")


# --- what voids it -------------------------------------------------------------------------------


def test_a_code_works_once(rt, api, user):
    flow_token, code = mailed_code(rt, api, user)
    finish(api, flow_token, code).ok()
    finish(api, flow_token, code).fails(*INVALID)
    assert count(rt, LoginSession) == 1


def test_a_code_opens_no_other_flow_and_no_second_step(rt, api, user):
    _, code = mailed_code(rt, api, user)
    other = start(api, user.email)
    finish(api, other, code).fails(*WRONG)
    verify(api, other, code, "email_code").fails(*INVALID)


def test_codes_of_both_kinds_do_not_void_each_other(rt, api, user):
    with RecordingSmtpServer() as sink:
        use_smtp(rt, sink.port)
        configure(rt, auth_email_code_login_enabled=True)
        pending = api.login(user).ok()["flow_token"]
        flow_token, code = mailed_code(rt, api, user)
        send_code(api, pending).ok()
        [other] = re.findall(r"\b\d{8}\b", text_of(sink.received[-1].message))
    finish(api, flow_token, code).ok()
    verify(api, pending, other, "email_code").ok()


def test_ended_sessions_void_it_for_whoever_has_the_code(rt, api, user):
    flow_token, code = mailed_code(rt, api, user)
    change_user(rt, user, session_version=7)
    finish(api, flow_token, wrong(code)).fails(*WRONG)
    finish(api, flow_token, code).fails(*INVALID)
    assert count(rt, LoginSession) == 0


def test_a_disabled_account_is_told_to_the_right_code_only(rt, api, user):
    flow_token, code = mailed_code(rt, api, user)
    change_user(rt, user, status="disabled")
    finish(api, flow_token, wrong(code)).fails(*WRONG)
    finish(api, flow_token, code).fails(403, "auth.account_disabled")


@pytest.mark.parametrize("change", [{"email": "new@example.com"}, {"email_verified_at": None}])
def test_a_changed_address_voids_it(rt, api, user, change):
    flow_token, code = mailed_code(rt, api, user)
    change_user(rt, user, **change)
    assert finish(api, flow_token, code).status == 401
    assert count(rt, LoginSession) == 0


def test_a_deleted_account_leaves_a_flow_that_never_succeeds(rt, api, user):
    flow_token, code = mailed_code(rt, api, user)
    delete_user(rt, user)
    finish(api, flow_token, code).fails(*WRONG)


def test_locking_the_account_leaves_no_flow(rt, api, browser, user):
    flow_token, code = mailed_code(rt, api, user)
    browser.login(user).ok()
    browser.post("/auth/lock").ok()
    finish(api, flow_token, code).fails(*INVALID)
    assert "email-sign-in" not in everything_in_redis(rt)


def test_redis_shows_neither_code_nor_address_nor_token(rt, api, user):
    flow_token, code = mailed_code(rt, api, user)
    start(api, "nobody@example.com")
    kept = everything_in_redis(rt)
    for secret in (flow_token, code, user.email, "nobody@example.com"):
        assert secret not in kept


# --- what breaks meanwhile -----------------------------------------------------------------------


def test_a_code_is_good_again_if_certainly_nothing_was_written(rt, api, user, monkeypatch):
    flow_token, code = mailed_code(rt, api, user)
    with monkeypatch.context() as patch:
        patch.setattr(completion.sessions, "open_session", fails_with(DatabaseUnavailable))
        finish(api, flow_token, code).fails(503, "database.error")
    finish(api, flow_token, code).ok()


def test_a_code_is_spent_if_a_session_may_have_been_opened(rt, api, user, monkeypatch):
    flow_token, code = mailed_code(rt, api, user)
    with monkeypatch.context() as patch:
        patch.setattr(completion.sessions, "open_session", fails_with(DatabaseConnectionLost))
        finish(api, flow_token, code).fails(503, "database.error")
    finish(api, flow_token, code).fails(*INVALID)


def fails_with(error):
    def fail(*_, **__):
        raise error

    return fail


# --- the setting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("off", ["setting", "mail"])
def test_switched_off_nothing_is_started_or_finished(rt, api, user, off):
    flow_token, code = mailed_code(rt, api, user)
    assert is_told(api) == [True, True]
    if off == "setting":
        configure(rt, auth_email_code_sign_in_enabled=False)
    else:
        configure(rt, mail_smtp_host="")
    api.post(START, {"email": user.email}).fails(*CLOSED)
    finish(api, flow_token, code).fails(*CLOSED)
    assert is_told(api) == [False, False]


def is_told(api):
    config = api.get("/public/frontend-config").ok()
    shown = config["branding"], api.post("/auth/check").ok()
    return [each["email_code_sign_in_enabled"] for each in shown]


def test_it_is_off_by_default_and_needs_mail(rt, boss):
    configure(rt, auth_email_code_sign_in_enabled=False, mail_smtp_host="")
    path = "/admin/config"
    on = {"values": {"auth_email_code_sign_in_enabled": True}}
    boss.patch(path, on).fails(400, "bad_request")
    use_smtp(rt, 1)
    boss.patch(path, on).ok()
    done = boss.patch(path, {"unset": ["mail_smtp_host"]}).ok()
    assert done["also_changed"] == ["auth_email_code_sign_in_enabled"]
    assert is_told(boss) == [False, False]


def test_it_is_no_last_way_to_sign_in(rt, boss):
    both = {"auth_password_login_enabled": False, "auth_passkey_login_enabled": False}
    boss.patch("/admin/config", {"values": both}).fails(400, "bad_request")


def test_it_is_no_way_in_for_an_account_either(rt, signed_in, user):
    """Its only passkey stays: the setting may be off tomorrow."""
    configure(rt, public_site_url=[ORIGIN])
    passkey = register(signed_in, Authenticator()).ok()
    change_user(rt, user, password_hash=None)
    signed_in.delete(f"/auth/passkeys/{passkey['id']}").fails(409, "conflict")
