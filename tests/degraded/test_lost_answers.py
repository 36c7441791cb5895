"""Answers of Redis get lost and the client asks again: what is done at most once stays so."""

import json
import re

import pytest

from app.core.errors import DatabaseUnavailable
from app.login import completion
from app.mfa import queries
from app.store import redis as redis_client
from tests.support import email_code, servers
from tests.support.api import ApiClient
from tests.support.authenticator import finish_setup, start_setup
from tests.support.challenge import give_totp, send_code, start_login, verify, wrong
from tests.support.factories import audit_rows, configure
from tests.support.lossy import LossyRedis
from tests.support.mailbox import text_of
from tests.support.outbox import use_smtp
from tests.support.smtp import RecordingSmtpServer

pytestmark = [pytest.mark.both_databases, pytest.mark.own_application]

WRONG = "auth.mfa_code_invalid"


@pytest.fixture
def lossy(own_valkey):
    """Between this test's application and its Valkey."""
    with servers.short_folder() as folder, LossyRedis(own_valkey.url, folder / "l.sock") as way:
        yield way


@pytest.fixture
def app(make_app, lossy):
    return make_app(redis=redis_client.connect(lossy.url))


@pytest.fixture
def enabled(rt, user, clock):
    return give_totp(rt, user, clock)


def fail_to_write(*_arguments, **_options):
    raise DatabaseUnavailable


def test_a_login_is_finished_and_every_attempt_counts_once(rt, api, user, enabled, lossy):
    flow_token = start_login(api, user)
    for _ in range(4):
        verify(api, flow_token, enabled.app.wrong_code()).fails(401, WRONG)
    lost = lossy.lost
    verify(api, flow_token, enabled.app.code()).ok()
    assert lossy.lost - lost == 3  # to both limits of attempts, and to the end of the login
    entries = audit_rows(rt, "user_mfa_challenge_failed")
    assert [json.loads(entry.details)["attempt_count"] for entry in entries] == [1, 2, 3, 4]
    verify(api, flow_token, enabled.app.wait()).fails(401, "auth.mfa_flow_invalid")


def test_the_fifth_wrong_code_ends_the_login(api, user, enabled):
    flow_token = start_login(api, user)
    for _ in range(4):
        verify(api, flow_token, enabled.app.wrong_code()).fails(401, WRONG)
    answer = verify(api, flow_token, enabled.app.wrong_code())
    answer.fails(401, "auth.mfa_attempts_exceeded")


def test_the_accounts_limit_counts_each_guess_once(api, user, enabled):
    for _ in range(5):
        flow_token = start_login(api, user)
        for _ in range(2):
            verify(api, flow_token, enabled.app.wrong_code()).fails(401, WRONG)
    api.login(user).fails(429, "rate_limited")


def test_a_login_whose_session_was_not_written_is_open_again(api, user, enabled, monkeypatch):
    flow_token = start_login(api, user)
    with monkeypatch.context() as patch:
        patch.setattr(completion, "open_session", fail_to_write)
        verify(api, flow_token, enabled.app.code()).fails(503, "database.error")
    verify(api, flow_token, enabled.app.code()).ok()
    verify(api, flow_token, enabled.app.wait()).fails(401, "auth.mfa_flow_invalid")


def test_a_setup_is_finished_and_opened_again(api, user, clock, monkeypatch):
    api.login(user).ok()
    flow_token, app = start_setup(api, clock)
    with monkeypatch.context() as patch:
        patch.setattr(queries, "add_totp", fail_to_write)
        finish_setup(api, flow_token, app.code()).fails(503, "database.error")
    finish_setup(api, flow_token, app.code()).ok()


def test_a_code_is_mailed(rt, api, user):
    with RecordingSmtpServer() as sink:
        use_smtp(rt, sink.port)
        configure(rt, auth_email_code_login_enabled=True)
        flow_token = start_login(api, user)
        send_code(api, flow_token).ok()
        send_code(api, flow_token).fails(429, "rate_limited")
        [mail] = sink.received
    [code] = re.findall(r"\b\d{8}\b", text_of(mail.message))
    verify(api, flow_token, wrong(code), "email_code").fails(401, WRONG)
    verify(api, flow_token, code, "email_code").ok()


def test_a_mailed_code_signs_in(rt, api, user, monkeypatch):
    """What counts starts asks once: a lost answer lets the mail go."""
    monkeypatch.setattr(rt.limits.rates, "take", lambda *_, **__: None)
    email_code.switch_on(rt)
    flow_token, code = email_code.mailed_code(rt, api, user)
    email_code.finish(api, flow_token, wrong(code)).fails(401, WRONG)
    email_code.finish(api, flow_token, code).ok()
    email_code.finish(api, flow_token, code).fails(401, "auth.mfa_flow_invalid")


def test_a_removed_factor_voids_what_waits(rt, app, api, user, clock):
    api.login(user).ok()
    waiting, device = start_setup(api, clock)
    flow_token, device2 = start_setup(api, clock)
    factor = finish_setup(api, flow_token, device2.code()).ok()["factor"]
    other = ApiClient(app)
    login = start_login(other, user)
    api.delete(f"/auth/mfa/factors/{factor['id']}", {"code": device2.wait()}).ok()
    verify(other, login, device2.wait()).fails(401, "auth.mfa_flow_invalid")
    finish_setup(api, waiting, device.code()).fails(401, "auth.token_invalid")
