"""Codes sent by e-mail."""

import hashlib
import json
import re
import threading
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from app.audit import queries as audit_queries
from app.core.errors import DatabaseConnectionLost, DatabaseUnavailable
from app.crypto.tokens import random_digits
from app.login import completion
from app.mail.mailer import Mailer, Timeouts
from app.mfa import email_codes
from app.sessions.models import LoginSession
from app.store.db import Base
from app.users import stored_preferences
from tests.support.api import ApiClient
from tests.support.challenge import (
    everything_in_redis,
    give_totp,
    send_code,
    start_login,
    verify,
    wrong,
)
from tests.support.factories import audit_rows, change_user, column_of, configure, count, make_user
from tests.support.live import free_port
from tests.support.mailbox import html_of, text_of
from tests.support.outbox import use_smtp
from tests.support.races import run_concurrently
from tests.support.smtp import RecordingSmtpServer, ScriptedSmtpServer, converse

EMAIL = "email_code"
INVALID = "auth.mfa_flow_invalid"
WRONG = "auth.mfa_code_invalid"


@pytest.fixture
def sink():
    with RecordingSmtpServer() as server:
        yield server


@pytest.fixture(autouse=True)
def switched_on(rt, sink):
    use_smtp(rt, sink.port)
    configure(rt, auth_email_code_login_enabled=True)


@pytest.fixture
def flow_token(api, user):
    """A login of `user` that waits."""
    return start_login(api, user)


def code_of(sink):
    """Return the code of the newest mail."""
    [code] = re.findall(r"\b\d{8}\b", text_of(sink.received[-1].message))
    return code


def sent_code(api, sink, flow_token):
    send_code(api, flow_token).ok()
    return code_of(sink)


def failures(rt):
    """Return why each recorded challenge failed."""
    entries = audit_rows(rt, "user_mfa_challenge_failed")
    return [json.loads(entry.details)["failure_reason"] for entry in entries]


# --- success -------------------------------------------------------------------------------------


def test_a_code_is_sent_and_signs_in(rt, api, user, sink, flow_token):
    assert send_code(api, flow_token).ok() == {"expires_in": 300, "resend_after": 60}
    [mail] = sink.received
    assert mail.recipients == [user.email]
    assert str(mail.message["To"]) == f"{user.username} <{user.email}>"
    assert code_of(sink) in html_of(mail.message)
    assert "5 minutes" in text_of(mail.message)
    answer = verify(api, flow_token, f" {code_of(sink)}\n", EMAIL)
    assert answer.ok() == {"status": "authenticated", "expires_in": 900}
    api.me().ok()
    assert everything_in_redis(rt).count("gatehouse:email-code:") == 0


def test_the_mail_is_in_the_language_of_the_browser_that_asks(api, sink, flow_token):
    send_code(api, flow_token, headers={"Accept-Language": "de"}).ok()
    [mail] = sink.received
    assert "5 Minuten" in text_of(mail.message)


def test_the_mail_is_sent_before_the_answer_and_never_through_the_outbox(rt, api, sink, flow_token):
    send_code(api, flow_token).ok()
    assert len(sink.received) == 1
    with rt.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM mail_outbox")).scalar() == 0


def test_a_template_of_the_operator_has_every_variable(rt, api, user, sink):
    """Username, code, site_name, expires_in, lang."""
    html = "<p>{{username}}, {{code}}, {{site_name}}, {{expires_in}}, {{lang}}</p>"
    configure(rt, mail_template_login_email_code_html=html, branding_title="Files")
    change_user(rt, user, preferences='{"language":"zh-CN"}')
    code = sent_code(api, sink, start_login(api, user))
    message = sink.received[-1].message
    assert text_of(message).strip() == f"{user.username}, {code}, Files, 5 minutes, zh-CN"
    assert html_of(message).strip() == f"<p>{text_of(message).strip()}</p>"


def test_the_language_of_a_mail_is_the_accounts_if_it_has_one():
    for stored in (None, '{"theme_mode":"dark"}', '{"language":null}', "not JSON"):
        assert stored_preferences.language(stored) is None, stored


def test_sending_is_audited(rt, api, user, sink, flow_token):
    send_code(api, flow_token, headers={"User-Agent": "curl"}).ok()
    [entry] = audit_rows(rt, "user_mfa_email_code_send")
    assert (entry.user_id, entry.entity_type, entry.entity_name) == (user.id, "mfa_factor", EMAIL)
    assert entry.user_agent == "curl"
    details = json.loads(entry.details)
    flow_id = details.pop("flow_id")
    assert details == {"method": EMAIL, "expires_in": 300, "resend_after": 60}
    [mail] = audit_rows(rt, "mail_send")
    assert json.loads(mail.details)["template_code"] == "login_email_code"
    verify(api, flow_token, code_of(sink), EMAIL).ok()
    [success] = audit_rows(rt, "user_mfa_challenge_success")
    assert json.loads(success.details)["flow_id"] == flow_id
    assert (success.entity_id, success.entity_name) == (None, EMAIL)


def test_the_first_steps_client_gets_the_session(api, user, sink):
    flow_token = start_login(api, user, address="198.51.100.1")
    verify(api, flow_token, sent_code(api, sink, flow_token), EMAIL).ok()
    [session] = api.get("/auth/sessions").ok()
    assert session["ip_address"] == "198.51.100.1"


def test_a_forced_change_comes_after_the_code(rt, api, user, sink):
    change_user(rt, user, must_change_password=True)
    flow_token = start_login(api, user)
    code = sent_code(api, sink, flow_token)
    status = verify(api, flow_token, code, EMAIL).ok()["status"]
    assert status == "password_change_required"


def test_sending_spends_no_attempt(api, sink, flow_token, rt):
    configure(rt, auth_email_code_login_resend_cooldown_secs=1)
    send_code(api, flow_token).ok()
    for _ in range(12):
        send_code(api, flow_token).fails(429, "rate_limited")
    for _ in range(4):
        verify(api, flow_token, wrong(code_of(sink)), EMAIL).fails(401, WRONG)
    verify(api, flow_token, code_of(sink), EMAIL).ok()


# --- lifetime and cooldown -----------------------------------------------------------------------


@pytest.mark.parametrize(("ttl", "passed", "expires_in"), [(100, 0, 100), (600, 299, 1)])
def test_a_code_lives_no_longer_than_its_login(
    rt, api, sink, clock, flow_token, ttl, passed, expires_in
):
    configure(rt, auth_email_code_login_ttl_secs=ttl)
    clock.advance(seconds=passed)
    assert send_code(api, flow_token).ok()["expires_in"] == expires_in


def test_the_mail_tells_minutes_and_never_more_than_there_are(rt, api, sink, clock, flow_token):
    clock.advance(seconds=1)
    send_code(api, flow_token).ok()
    [mail] = sink.received
    assert "works once, for 4 minutes." in mail.message.get_body(("plain",)).get_content()


def test_the_cooldown_is_that_of_the_settings(rt, api, sink, clock, flow_token):
    configure(rt, auth_email_code_login_resend_cooldown_secs=7)
    assert send_code(api, flow_token).ok()["resend_after"] == 7
    assert send_code(api, flow_token).fails(429, "rate_limited").retry_after == 7
    clock.advance(seconds=6.5)
    assert send_code(api, flow_token).fails(429, "rate_limited").retry_after == 1
    clock.advance(seconds=0.5)
    send_code(api, flow_token).ok()
    assert len(sink.received) == 2


def test_the_cooldown_is_the_accounts_whatever_the_login(rt, api, user, sink, clock, flow_token):
    send_code(api, flow_token).ok()
    other = start_login(api, user)
    send_code(api, other).fails(429, "rate_limited")
    stranger = make_user(rt)
    send_code(api, start_login(api, stranger)).ok()
    clock.advance(seconds=60)
    send_code(api, other).ok()


def test_a_used_code_leaves_no_cooldown(api, user, sink, flow_token):
    verify(api, flow_token, sent_code(api, sink, flow_token), EMAIL).ok()
    send_code(api, start_login(api, user)).ok()


def test_a_new_code_voids_the_one_before(api, user, sink, clock, flow_token):
    old = sent_code(api, sink, flow_token)
    clock.advance(seconds=60)
    new = sent_code(api, sink, flow_token)
    verify(api, flow_token, old, EMAIL).fails(401, WRONG)
    verify(api, flow_token, new, EMAIL).ok()


def test_a_code_for_another_login_voids_the_one_before(api, user, sink, clock, flow_token):
    old = sent_code(api, sink, flow_token)
    clock.advance(seconds=60)
    other = start_login(api, user)
    new = sent_code(api, sink, other)
    for code in (old, new):
        verify(api, flow_token, code, EMAIL).fails(401, "auth.mfa_email_code_required")
    verify(api, other, old, EMAIL).fails(401, WRONG)
    verify(api, other, new, EMAIL).ok()


def test_a_login_that_is_completed_otherwise_leaves_the_other_logins_code(rt, api, user, sink):
    configure(rt, auth_email_code_login_allow_totp_fallback=True)
    enabled = give_totp(rt, user)
    first, second = start_login(api, user), start_login(api, user)
    code = sent_code(api, sink, second)
    verify(api, first, enabled.app.code()).ok()
    verify(api, second, code, EMAIL).ok()


def test_an_expired_code_is_told_once(rt, api, sink, clock, flow_token):
    configure(rt, auth_email_code_login_ttl_secs=10)
    code = sent_code(api, sink, flow_token)
    clock.advance(seconds=10)
    verify(api, flow_token, code, EMAIL).fails(401, "auth.mfa_email_code_expired")
    for _ in range(6):
        verify(api, flow_token, code, EMAIL).fails(401, "auth.mfa_email_code_required")
    assert failures(rt) == ["auth.mfa_email_code_expired"]
    new = sent_code(api, sink, flow_token)
    for _ in range(4):
        verify(api, flow_token, wrong(new), EMAIL).fails(401, WRONG)
    verify(api, flow_token, new, EMAIL).ok()


def test_a_code_is_good_until_its_last_second(rt, api, sink, clock, flow_token):
    configure(rt, auth_email_code_login_ttl_secs=10)
    code = sent_code(api, sink, flow_token)
    clock.advance(seconds=9)
    verify(api, flow_token, code, EMAIL).ok()


# --- all or nothing ------------------------------------------------------------------------------


def test_a_login_whose_session_was_certainly_not_opened_can_be_finished(
    rt, api, user, sink, flow_token, monkeypatch
):
    code = sent_code(api, sink, flow_token)

    def fail(*_, **__):
        raise DatabaseUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(completion, "open_session", fail)
        verify(api, flow_token, code, EMAIL).fails(503, "database.error")
    assert count(rt, LoginSession) == 0
    verify(api, flow_token, code, EMAIL).ok()


@pytest.mark.parametrize("is_written", [True, False])
def test_a_login_whose_session_may_be_open_is_over(
    rt, api, user, sink, flow_token, monkeypatch, is_written
):
    """The code has no row that would refuse it the second time."""
    code = sent_code(api, sink, flow_token)
    real = completion.open_session

    def lose_the_answer(*arguments, **options):
        if is_written:
            real(*arguments, **options)
        raise DatabaseConnectionLost

    with monkeypatch.context() as patch:
        patch.setattr(completion, "open_session", lose_the_answer)
        answer = verify(api, flow_token, code, EMAIL).fails(503, "database.error")
    assert answer.set_cookies == {}
    verify(api, flow_token, code, EMAIL).fails(401, INVALID)
    assert count(rt, LoginSession) == (1 if is_written else 0)
    # Beginning again does not have to wait for the cooldown.
    again = start_login(api, user)
    verify(api, again, sent_code(api, sink, again), EMAIL).ok()


# --- verifying: what is refused ------------------------------------------------------------------


def test_without_a_mail_there_is_nothing_to_verify(rt, api, user, flow_token):
    for _ in range(6):
        verify(api, flow_token, "12345678", EMAIL).fails(401, "auth.mfa_email_code_required")
    assert failures(rt) == []


def test_who_is_overtaken_at_the_same_login_lacks_no_code(
    rt, app, api, sink, flow_token, monkeypatch
):
    code, real = sent_code(api, sink, flow_token), email_codes.find_hash

    def overtaken(*arguments):
        monkeypatch.setattr(email_codes, "find_hash", real)
        verify(ApiClient(app), flow_token, code, EMAIL).ok()
        return real(*arguments)

    monkeypatch.setattr(email_codes, "find_hash", overtaken)
    verify(api, flow_token, code, EMAIL).fails(401, INVALID)
    assert failures(rt) == []
    assert count(rt, LoginSession) == 1


def test_a_mistyped_code_stays_good_until_the_attempts_are_spent(rt, api, sink, flow_token):
    code = sent_code(api, sink, flow_token)
    for _ in range(4):
        verify(api, flow_token, wrong(code), EMAIL).fails(401, WRONG)
    verify(api, flow_token, wrong(code), EMAIL).fails(401, "auth.mfa_attempts_exceeded")
    verify(api, flow_token, code, EMAIL).fails(401, INVALID)
    assert failures(rt) == [WRONG] * 4 + ["auth.mfa_attempts_exceeded"]


def test_eight_digits_are_wanted(api, sink, flow_token):
    """Before it is asked whether there is a code at all, or whether the method is open."""
    for code in ("1234567", "123456789", "1234567x", "一二三四五六七八"):
        answer = verify(api, flow_token, code, EMAIL)
        assert (answer.status, answer.code) == (401, WRONG), code


def test_a_method_that_was_switched_off_meanwhile_is_not_open(rt, api, sink, flow_token):
    code = sent_code(api, sink, flow_token)
    for settings in (
        {"auth_email_code_login_enabled": False},
        {"mail_smtp_host": ""},
        {"mail_from_address": ""},
    ):
        configure(rt, **settings)
        for _ in range(2):  # no attempt is spent
            answer = verify(api, flow_token, code, EMAIL)
            assert (answer.status, answer.code) == (401, "auth.mfa_factor_required"), settings
        use_smtp(rt, sink.port)
        configure(rt, auth_email_code_login_enabled=True)
    verify(api, flow_token, code, EMAIL).ok()


def test_an_address_that_is_not_verified_any_more_gets_nobody_in(rt, api, user, sink, flow_token):
    code = sent_code(api, sink, flow_token)
    change_user(rt, user, email_verified_at=None)
    verify(api, flow_token, code, EMAIL).fails(401, "auth.mfa_factor_required")
    send_code(api, flow_token).fails(401, "auth.mfa_factor_required")


def test_a_code_that_went_to_another_address_is_worth_nothing(rt, api, user, sink, flow_token):
    code = sent_code(api, sink, flow_token)
    change_user(rt, user, email="elsewhere@example.com")
    verify(api, flow_token, code, EMAIL).fails(401, WRONG)


def test_another_accounts_code_is_worth_nothing(rt, api, sink, flow_token):
    other = start_login(api, make_user(rt))
    mine, theirs = sent_code(api, sink, flow_token), sent_code(api, sink, other)
    verify(api, flow_token, theirs, EMAIL).fails(401, WRONG)
    verify(api, other, mine, EMAIL).fails(401, WRONG)
    verify(api, flow_token, mine, EMAIL).ok()


# --- sending: the order of checks ----------------------------------------------------------------


def test_a_blank_token_comes_before_everything_else(rt, api):
    configure(rt, auth_email_code_login_enabled=False)
    send_code(api, " ").fails(401, INVALID)


def test_the_switches_come_before_the_login_is_looked_up(rt, api, flow_token):
    configure(rt, auth_email_code_login_enabled=False)
    for token in (flow_token, "mfa_unknown"):
        send_code(api, token).fails(503, "mail.not_configured")
    configure(rt, auth_email_code_login_enabled=True)
    configure(rt, mail_smtp_host="")
    for token in (flow_token, "mfa_unknown"):
        send_code(api, token).fails(503, "mail.not_configured")


def test_the_checks_come_in_the_documented_order(rt, api, user, sink, clock, flow_token):
    give_totp(rt, user)
    version = column_of(rt, user, "session_version")
    change_user(rt, user, session_version=99, status="disabled", activated_at=None)
    configure(rt, auth_password_login_enabled=False)
    send_code(api, "mfa_unknown").fails(401, INVALID)
    send_code(api, flow_token).fails(403, "auth.account_disabled")
    change_user(rt, user, status="active")
    send_code(api, flow_token).fails(403, "auth.pending_activation")
    change_user(rt, user, activated_at=clock.now())
    send_code(api, flow_token).fails(401, INVALID)
    change_user(rt, user, session_version=version)
    send_code(api, flow_token).fails(401, "auth.mfa_factor_required")
    configure(rt, auth_email_code_login_allow_totp_fallback=True)
    # The password switch is looked at when the login is completed.
    code = sent_code(api, sink, flow_token)
    send_code(api, flow_token).fails(429, "rate_limited")
    verify(api, flow_token, code, EMAIL).fails(403, "auth.password_login_disabled")
    change_user(rt, user, status="disabled")
    clock.advance(seconds=300)
    send_code(api, flow_token).fails(401, "auth.mfa_flow_expired")


def test_a_login_that_is_over_gets_no_mail(api, sink, flow_token):
    code = sent_code(api, sink, flow_token)
    verify(api, flow_token, code, EMAIL).ok()
    send_code(api, flow_token).fails(401, INVALID)
    assert len(sink.received) == 1


def test_an_exhausted_login_gets_no_mail(api, sink, flow_token):
    for _ in range(5):
        verify(api, flow_token, "1", EMAIL)
    send_code(api, flow_token).fails(401, INVALID)
    assert sink.received == []


def test_a_malformed_body_is_refused(api):
    for body in ({}, {"flow_token": None}, {"flow_token": 1}, []):
        answer = api.post("/auth/mfa/challenge/email-code/send", body)
        assert (answer.status, answer.code) == (400, "bad_request"), body


# --- mail servers --------------------------------------------------------------------------------


def expect_no_trace(rt, api, sink, flow_token):
    """What failed left neither code nor cooldown."""
    assert audit_rows(rt, "user_mfa_email_code_send") == []
    assert len(audit_rows(rt, "mail_delivery_failed")) == 1
    verify(api, flow_token, "12345678", EMAIL).fails(401, "auth.mfa_email_code_required")
    use_smtp(rt, sink.port)
    verify(api, flow_token, sent_code(api, sink, flow_token), EMAIL).ok()


def test_a_refused_mail_leaves_no_cooldown(rt, api, user, sink, flow_token):
    with RecordingSmtpServer(refusals={user.email: "550 no such mailbox"}) as refusing:
        use_smtp(rt, refusing.port)
        send_code(api, flow_token).fails(503, "mail.delivery_failed")
    expect_no_trace(rt, api, sink, flow_token)


def test_a_code_that_left_is_good_though_the_mail_could_not_be_recorded(
    api, sink, flow_token, monkeypatch
):
    with monkeypatch.context() as failing:
        failing.setattr(audit_queries, "add", Mock(side_effect=DatabaseUnavailable))
        send_code(api, flow_token).ok()
    verify(api, flow_token, code_of(sink), EMAIL).ok()


def test_a_server_that_is_not_there_leaves_no_cooldown(rt, api, sink, flow_token):
    use_smtp(rt, free_port())
    send_code(api, flow_token).fails(503, "mail.delivery_failed")
    expect_no_trace(rt, api, sink, flow_token)


@pytest.mark.parametrize("until", [b"EHLO", b"DATA"])
def test_a_server_that_hangs_up_leaves_no_cooldown(rt, api, sink, flow_token, until):
    with ScriptedSmtpServer(lambda client: converse(client, until=until)) as server:
        use_smtp(rt, server.port)
        send_code(api, flow_token).fails(503, "mail.delivery_failed")
    expect_no_trace(rt, api, sink, flow_token)


def test_a_server_that_hangs_leaves_no_cooldown(rt, make_app, api, sink, flow_token):
    brief = ApiClient(make_app(mailer=Mailer(timeouts=Timeouts(answer=0.2, attempt=1))))
    released = threading.Event()
    with ScriptedSmtpServer(lambda _client: released.wait(20)) as server:
        use_smtp(rt, server.port)
        send_code(brief, flow_token).fails(503, "mail.delivery_failed")
        released.set()
    expect_no_trace(rt, api, sink, flow_token)


def test_nothing_else_waits_while_a_mail_server_hangs(rt, make_app, api, user, sink, flow_token):
    """No transaction is open meanwhile, no lock is held: on SQLite nobody else could write."""
    patient = ApiClient(make_app(mailer=Mailer(timeouts=Timeouts(answer=30, attempt=30))))
    hanging, released = threading.Event(), threading.Event()

    def hang(client):
        hanging.set()
        released.wait(30)

    answers = []
    with ScriptedSmtpServer(hang) as server:
        use_smtp(rt, server.port)
        sender = threading.Thread(target=lambda: answers.append(send_code(patient, flow_token)))
        sender.start()
        try:
            assert hanging.wait(10)
            send_code(api, flow_token).fails(429, "rate_limited")
            configure(rt, auth_email_code_login_enabled=False)
            assert api.login(user).ok()["status"] == "authenticated"
            api.refresh().ok()
            with rt.reading() as connection:
                if not rt.database.is_sqlite:
                    idle = (
                        "SELECT count(*) FROM pg_stat_activity"
                        " WHERE state LIKE 'idle in%' AND datname = current_database()"
                    )
                    assert connection.execute(sa.text(idle)).scalar() == 0
            assert sender.is_alive()
        finally:
            released.set()
            sender.join(20)
    answers[0].fails(503, "mail.delivery_failed")


def test_a_slow_failure_does_not_void_a_newer_code(
    rt, make_app, api, user, sink, clock, flow_token
):
    patient = ApiClient(make_app(mailer=Mailer(timeouts=Timeouts(answer=30, attempt=30))))
    hanging, released = threading.Event(), threading.Event()

    def hang(client):
        hanging.set()
        released.wait(30)

    with ScriptedSmtpServer(hang) as server:
        use_smtp(rt, server.port)
        sender = threading.Thread(target=lambda: send_code(patient, flow_token))
        sender.start()
        try:
            assert hanging.wait(10)
            clock.advance(seconds=60)
            use_smtp(rt, sink.port)
            code = sent_code(api, sink, flow_token)
        finally:
            released.set()
            sender.join(20)
    verify(api, flow_token, code, EMAIL).ok()


# --- secrets and races ---------------------------------------------------------------------------


def test_neither_store_shows_a_code(rt, api, sink, flow_token):
    code = sent_code(api, sink, flow_token)
    held = everything_in_redis(rt)
    assert "gatehouse:email-code:" in held
    with rt.reading() as connection:
        for table in Base.metadata.sorted_tables:
            held += str(connection.execute(sa.select(table)).all())
    for secret in (code, hashlib.sha256(code.encode()).hexdigest(), flow_token):
        assert secret not in held


def test_a_rotated_key_still_verifies_a_code(make_app, sink):
    app = make_app(secret_keys=())
    rt, api = app.extensions["gatehouse"], ApiClient(app)
    flow_token = start_login(api, make_user(rt))
    code = sent_code(api, sink, flow_token)
    rt.keyring.rotate()
    verify(api, flow_token, code, EMAIL).ok()


def test_of_many_wishes_at_once_one_mail_is_sent(app, sink, flow_token):
    answers = run_concurrently([lambda: send_code(ApiClient(app), flow_token)] * 16)
    assert sorted(answer.status for answer in answers) == [200] + [429] * 15
    assert len(sink.received) == 1


def test_codes_have_eight_digits_also_when_they_begin_with_zeros():
    codes = {random_digits(2) for _ in range(2000)}
    assert codes == {f"{number:02d}" for number in range(100)}
