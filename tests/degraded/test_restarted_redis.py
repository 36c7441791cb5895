"""A Redis that keeps nothing is restarted: whoever waits begins again, and nobody gets in."""

import pytest

from app.sessions.models import LoginSession
from app.store import redis as redis_client
from tests.support.api import ApiClient
from tests.support.authenticator import finish_setup, start_setup
from tests.support.challenge import give_totp, start_login, verify
from tests.support.factories import count, make_user

pytestmark = [pytest.mark.both_databases, pytest.mark.own_application]


@pytest.fixture
def app(make_app, own_valkey):
    return make_app(redis=redis_client.connect(own_valkey.url))


@pytest.mark.parametrize("code", ["right", "wrong", "recovery"])
def test_a_login_that_waits_begins_again(rt, api, user, clock, own_valkey, code):
    enabled = give_totp(rt, user, clock)
    typed = {
        "right": (enabled.app.code(), "totp"),
        "wrong": (enabled.app.wrong_code(), "totp"),
        "recovery": (enabled.recovery_codes[0], "recovery_code"),
    }[code]
    flow_token = start_login(api, user)
    own_valkey.kill()
    answer = verify(api, flow_token, *typed).fails(503, "internal_server_error")
    assert answer.set_cookies == {}
    own_valkey.start()
    clock.advance(seconds=answer.retry_after)
    answer = verify(api, flow_token, *typed).fails(401, "auth.mfa_flow_invalid")
    assert answer.set_cookies == {}
    assert count(rt, LoginSession) == 0
    api.me().fails(401, "auth.token_missing")
    verify(api, start_login(api, user), enabled.app.code()).ok()


def test_a_restart_that_nobody_noticed_is_no_access_either(rt, api, user, clock, own_valkey):
    enabled = give_totp(rt, user, clock)
    flow_token = start_login(api, user)
    own_valkey.kill()
    own_valkey.start()
    verify(api, flow_token, enabled.app.code()).fails(401, "auth.mfa_flow_invalid")
    verify(api, start_login(api, user), enabled.app.code()).ok()


def test_a_set_up_that_waits_begins_again(rt, app, user, clock, own_valkey):
    client = ApiClient(app)
    client.login(make_user(rt)).ok()
    flow_token, device = start_setup(client, clock)
    own_valkey.kill()
    own_valkey.start()
    finish_setup(client, flow_token, device.code()).fails(401, "auth.token_invalid")
    flow_token, device = start_setup(client, clock)
    finish_setup(client, flow_token, device.code()).ok()
