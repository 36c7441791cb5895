"""A replica of Redis takes over that lacks the last moments: what was used there opens nothing."""

import re
from contextlib import contextmanager

import pytest
from redis import Redis

from app.installation import cleanup
from app.sessions.models import LoginSession
from tests.support import email_code
from tests.support.api import ORIGIN, ApiClient
from tests.support.challenge import give_totp, send_code, start_login, verify
from tests.support.factories import configure, count, make_user
from tests.support.mailbox import text_of
from tests.support.outbox import use_smtp
from tests.support.passkeys import Authenticator, finish_login, register
from tests.support.passkeys import start_login as start_passkey
from tests.support.smtp import RecordingSmtpServer

pytestmark = pytest.mark.both_databases

INVALID = 401, "auth.mfa_flow_invalid"


@pytest.fixture
def forgotten(redis_url):
    """A block after which Redis has what it had before."""

    @contextmanager
    def forget():
        with Redis.from_url(redis_url) as redis:
            before = {key: (redis.pttl(key), redis.dump(key)) for key in redis.scan_iter()}
            yield
            redis.flushdb()
            for key, (left_ms, value) in before.items():
                redis.restore(key, max(0, left_ms), value)

    return forget


@pytest.mark.parametrize("method", ["totp", "recovery_code"])
def test_a_second_factor_of_the_database(rt, api, user, clock, forgotten, method):
    enabled = give_totp(rt, user, clock)
    code = {"totp": enabled.app.code(), "recovery_code": enabled.recovery_codes[0]}[method]
    flow_token = start_login(api, user)
    with forgotten():
        verify(api, flow_token, code, method).ok()
    assert verify(api.stranger(), flow_token, code, method).status == 401
    assert count(rt, LoginSession) == 1


def test_a_mailed_second_factor(rt, api, user, forgotten):
    with RecordingSmtpServer() as sink:
        use_smtp(rt, sink.port)
        configure(rt, auth_email_code_login_enabled=True)
        flow_token = start_login(api, user)
        send_code(api, flow_token).ok()
        [code] = re.findall(r"\b\d{8}\b", text_of(sink.received[-1].message))
    with forgotten():
        verify(api, flow_token, code, "email_code").ok()
    api.post("/auth/logout").ok()
    verify(api.stranger(), flow_token, code, "email_code").fails(*INVALID)
    assert count(rt, LoginSession) == 1


def test_a_mailed_code_that_signs_in(rt, api, user, forgotten):
    email_code.switch_on(rt)
    flow_token, code = email_code.mailed_code(rt, api, user)
    with forgotten():
        email_code.finish(api, flow_token, code).ok()
    email_code.finish(api.stranger(), flow_token, code).fails(*INVALID)
    assert count(rt, LoginSession) == 1


def test_a_mailed_code_outlives_its_session(rt, api, user, clock, forgotten):
    email_code.switch_on(rt)
    configure(rt, auth_refresh_token_ttl_secs=30)
    flow_token, code = email_code.mailed_code(rt, api, user)
    with forgotten():
        email_code.finish(api, flow_token, code).ok()
    clock.advance(seconds=60)
    assert cleanup.cleanup(rt)["sessions"] == 0
    email_code.finish(api.stranger(), flow_token, code).fails(*INVALID)
    clock.advance(seconds=600)
    assert cleanup.cleanup(rt)["sessions"] == 1


def test_a_signature_of_a_passkey_that_does_not_count(rt, app, api, user, forgotten):
    configure(rt, public_site_url=[ORIGIN])
    owner, device = ApiClient(app), Authenticator()
    owner.login(user).ok()
    register(owner, device).ok()
    started = start_passkey(api)
    signed = device.get(started["public_key"])
    with forgotten():
        finish_login(api, started["flow_id"], signed).ok()
    refused = finish_login(api.stranger(), started["flow_id"], signed)
    refused.fails(401, "auth.credentials_failed")
    assert count(rt, LoginSession) == 2


def test_what_was_not_used_before_still_signs_in(rt, api, user, clock, forgotten):
    other = make_user(rt)
    enabled = give_totp(rt, user, clock)
    flow_token = start_login(api, user)
    with forgotten():
        api.stranger().login(other).ok()
    verify(api, flow_token, enabled.app.code()).ok()
