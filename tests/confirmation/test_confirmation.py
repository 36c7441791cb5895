"""/auth/confirmation."""

import pytest

from tests.support.api import ORIGIN, ApiClient
from tests.support.authenticator import enable_totp
from tests.support.challenge import give_totp
from tests.support.external import add_provider, link
from tests.support.factories import audit_rows, change_user, configure, make_user
from tests.support.mailbox import text_of
from tests.support.outbox import use_smtp
from tests.support.passkeys import Authenticator, register
from tests.support.races import run_concurrently
from tests.support.smtp import RecordingSmtpServer

PATH = "/auth/confirmation"
WRONG = 401, "auth.credentials_failed"
WRONG_CODE = 401, "auth.mfa_code_invalid"
REFUSED = 400, "bad_request"
DANGEROUS = "/auth/passkeys/register/start"
STALE = 412, "precondition_failed"


@pytest.fixture
def later(rt, clock, signed_in):
    """The sign-in is long ago, and dangerous changes need a confirmation."""
    configure(rt, public_site_url=[ORIGIN], auth_confirmation_max_age_secs=600)
    clock.advance(minutes=11)
    signed_in.refresh().ok()
    return signed_in


def by_password(client, password, **more):
    return client.post(PATH, {"method": "password", "password": password, **more})


def start(client):
    return client.post(f"{PATH}/passkey/start").ok()


def finish(client, flow, credential):
    body = {"flow_id": flow["flow_id"], "credential": credential}
    return client.post(f"{PATH}/passkey/finish", body)


def is_fresh(client):
    return client.get(PATH).ok()["is_fresh"]


MISSING = {
    "no password": {"method": "password"},
    "null for a password": {"method": "password", "password": None},
    "no code": {"method": "email_code"},
    "null for a code": {"method": "email_code", "code": None, "password": "any"},
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_no_attempt(signed_in, user, what):
    for _ in range(12):
        signed_in.post(PATH, MISSING[what]).fails(*REFUSED)
    by_password(signed_in, user.password).ok()
    signed_in.stranger().login(user).ok()


def test_an_empty_password_is_an_attempt(signed_in, user):
    for _ in range(10):
        by_password(signed_in, "").fails(*WRONG)
    signed_in.stranger().login(user).fails(429, "rate_limited")


def test_nor_is_the_right_password_without_the_code_that_is_needed_besides(rt, signed_in, user):
    give_totp(rt, user)
    for _ in range(12):
        by_password(signed_in, user.password).fails(*WRONG_CODE)
    assert signed_in.stranger().login(user).ok()["status"] == "mfa_required"


def test_a_sign_in_confirms_for_a_quarter_of_an_hour(signed_in, clock):
    shown = signed_in.get(PATH).ok()
    assert shown == {
        "is_fresh": True,
        "expires_in": 900,
        "required_for_changes": False,
        "methods": ["password"],
        "needs_code": False,
    }
    clock.advance(minutes=15)
    signed_in.refresh().ok()
    stale = signed_in.get(PATH).ok()
    assert (stale["is_fresh"], stale["expires_in"]) == (False, 0)


@pytest.mark.both_databases
def test_the_password_opens_what_was_refused_for_as_long_as_the_setting_says(later, user, clock):
    later.post(DANGEROUS, {}).fails(*STALE)
    by_password(later, "not hers").fails(*WRONG)
    later.post(DANGEROUS, {}).fails(*STALE)
    assert by_password(later, user.password).ok() == {"expires_in": 600}
    later.post(DANGEROUS, {}).ok()
    clock.advance(minutes=10, seconds=1)
    later.post(DANGEROUS, {}).fails(*STALE)


def test_a_confirmation_lasts_long_enough_to_use_it(later, rt, user, clock):
    configure(rt, auth_confirmation_max_age_secs=60)
    assert by_password(later, user.password).ok()["expires_in"] == 60
    clock.advance(seconds=59)
    later.post(DANGEROUS, {}).ok()
    clock.advance(seconds=2)
    later.post(DANGEROUS, {}).fails(*STALE)


def test_a_confirmation_is_none_for_another_session(later, user, clock):
    other = later.stranger()
    other.login(user).ok()
    clock.advance(minutes=11)
    for client in (later, other):
        client.refresh().ok()
    by_password(other, user.password).ok()
    assert (is_fresh(later), is_fresh(other)) == (False, True)


def test_a_refreshed_session_stays_confirmed_and_no_longer(later, user, clock):
    by_password(later, user.password).ok()
    clock.advance(minutes=9)
    later.refresh().ok()
    assert later.get(PATH).ok()["expires_in"] == 60


def test_with_a_second_factor_the_password_needs_a_code(later, user, clock):
    by_password(later, user.password).ok()
    totp = enable_totp(later, clock)
    clock.advance(minutes=11)
    later.refresh().ok()
    assert later.get(PATH).ok()["needs_code"] is True
    by_password(later, user.password).fails(*WRONG_CODE)
    by_password(later, user.password, code=totp.app.wrong_code()).fails(*WRONG_CODE)
    assert not is_fresh(later)
    code = totp.app.wait()
    by_password(later, user.password, code=code).ok()
    by_password(later, user.password, code=code).fails(*WRONG_CODE)
    spent = totp.recovery_codes[0]
    by_password(later, user.password, code=spent).ok()
    by_password(later, user.password, code=spent).fails(401, "auth.mfa_recovery_code_used")


def test_wrong_passwords_count_with_those_of_logins(later, user):
    for _ in range(10):
        by_password(later, "not hers").fails(*WRONG)
    by_password(later, user.password).fails(429, "rate_limited")
    later.stranger().login(user).fails(429, "rate_limited")


def test_a_passkey_confirms_once(later, rt, user):
    by_password(later, user.password).ok()
    device = Authenticator()
    register(later, device).ok()
    flow = start(later)
    allowed = flow["public_key"]["publicKey"]["allowCredentials"]
    assert len(allowed) == 1
    assertion = device.get(flow["public_key"])
    assert finish(later, flow, assertion).ok() == {"expires_in": 600}
    finish(later, flow, assertion).fails(401, "auth.token_invalid")
    methods = [row.details for row in audit_rows(rt, "user_confirm_identity")]
    assert methods == ['{"method": "password"}', '{"method": "passkey"}']


def test_neither_anothers_passkey_nor_anothers_flow_confirms(later, app, rt, user, clock):
    by_password(later, user.password).ok()
    mine, theirs = Authenticator(), Authenticator()
    register(later, mine).ok()
    other = ApiClient(app)
    other.login(make_user(rt)).ok()
    register(other, theirs).ok()
    again = later.stranger()
    again.login(user).ok()
    clock.advance(minutes=11)
    for client in (later, again):
        client.refresh().ok()
    flow = start(later)
    answer = finish(later, flow, theirs.get(start(other)["public_key"]))
    assert answer.fails(*WRONG).data is None
    flow = start(later)
    assertion = mine.get(flow["public_key"])
    assert finish(again, flow, assertion).fails(*WRONG).data is None
    assert (is_fresh(later), is_fresh(again)) == (False, False)


def test_of_a_passkey_that_nobody_has_any_more_is_said_that_it_is_unknown(later, user):
    by_password(later, user.password).ok()
    kept, gone = Authenticator(), Authenticator()
    register(later, kept).ok()
    passkey = register(later, gone).ok()
    flow = start(later)
    assertion = gone.get(flow["public_key"])
    later.delete(f"/auth/passkeys/{passkey['id']}").ok()
    answer = finish(later, flow, assertion).fails(*WRONG)
    assert answer.data == {"credential_unknown": True}


def test_an_ended_session_confirms_nothing(later, user):
    cookies = later.bearer()
    later.post("/auth/logout").ok()
    cookies.post(PATH, {"method": "password", "password": user.password}).fails(
        401, "auth.token_invalid"
    )


def test_only_what_is_offered_is_taken(later, rt, user):
    later.post(PATH, {"method": "email_code", "code": "12345678"}).fails(*REFUSED)
    later.post(f"{PATH}/email-code/send").fails(*REFUSED)
    later.post(f"{PATH}/passkey/start").fails(*REFUSED)
    later.post(PATH, {"method": "wish"}).fails(*REFUSED)
    configure(rt, auth_passkey_login_enabled=True, auth_password_login_enabled=False)
    by_password(later, user.password).fails(*REFUSED)


@pytest.fixture
def sink():
    with RecordingSmtpServer() as server:
        yield server


@pytest.fixture
def mailed(later, rt, user, sink):
    """An account with nothing but an external identity and a verified address."""
    use_smtp(rt, sink.port)
    link(rt, user, add_provider(rt))
    change_user(rt, user, password_hash=None)
    return later


def code_in(sink):
    text = text_of(sink.received[-1].message)
    return next(word for word in text.split() if word.isdigit() and len(word) == 8)


@pytest.mark.parametrize("at_sign_in", [False, True])
def test_a_mailed_code_confirms_once(mailed, rt, sink, at_sign_in):
    configure(rt, auth_email_code_login_enabled=at_sign_in)
    assert mailed.get(PATH).ok()["methods"] == ["email_code"]
    body = {"method": "email_code", "code": "12345678"}
    mailed.post(PATH, body).fails(401, "auth.mfa_email_code_required")
    assert mailed.post(f"{PATH}/email-code/send").ok()["resend_after"] > 0
    mailed.post(f"{PATH}/email-code/send").fails(429, "rate_limited")
    mailed.post(PATH, body).fails(*WRONG_CODE)
    right = {"method": "email_code", "code": code_in(sink)}
    answers = run_concurrently([lambda: mailed.post(PATH, right) for _ in range(4)])
    assert sorted(answer.status for answer in answers) == [200, 401, 401, 401]


def test_where_a_sign_in_asks_for_a_mailed_code_the_password_needs_one(later, rt, user, sink):
    use_smtp(rt, sink.port)
    configure(rt, auth_email_code_login_enabled=True)
    shown = later.get(PATH).ok()
    assert (shown["methods"], shown["needs_code"]) == (["password"], True)
    by_password(later, user.password).fails(401, "auth.mfa_email_code_required")
    later.post(f"{PATH}/email-code/send").ok()
    by_password(later, user.password, code="12345678").fails(*WRONG_CODE)
    later.post(PATH, {"method": "email_code", "code": code_in(sink)}).fails(*REFUSED)
    by_password(later, "not the password", code=code_in(sink)).fails(*WRONG)
    assert later.get(PATH).ok()["is_fresh"] is False
    by_password(later, user.password, code=code_in(sink)).ok()
    by_password(later, user.password, code=code_in(sink)).fails(401, "auth.mfa_email_code_required")


def test_with_an_authenticator_app_the_mailbox_is_not_enough(mailed, rt, user, clock, sink):
    change_user(rt, user, password_hash=rt.passwords.hash("a passing password"))
    by_password(mailed, "a passing password").ok()
    enable_totp(mailed, clock)
    change_user(rt, user, password_hash=None)
    assert mailed.get(PATH).ok()["methods"] == []
