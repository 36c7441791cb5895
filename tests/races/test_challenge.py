"""Second factors under simultaneous requests."""

import json
import os
import re
import signal
from collections import Counter

import pytest

from app.core.clock import Clock
from app.login import second_factor
from app.mfa.models import MfaRecoveryCode
from app.sessions.models import LoginSession
from tests.support import email_code
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, send_code, start_login, verify, wrong
from tests.support.factories import audit_rows, configure, count, make_user
from tests.support.live import eventually
from tests.support.mailbox import text_of
from tests.support.outbox import use_smtp
from tests.support.races import run_concurrently
from tests.support.smtp import RecordingSmtpServer

pytestmark = pytest.mark.both_databases

INVALID = "auth.mfa_flow_invalid"
WRONG = "auth.mfa_code_invalid"
EXCEEDED = "auth.mfa_attempts_exceeded"
RECOVERY = "recovery_code"
EMAIL = "email_code"


@pytest.fixture
def enabled(rt, user, clock):
    return give_totp(rt, user, clock)


@pytest.fixture
def looked_at(monkeypatch):
    """Every code that was judged."""
    codes = []
    for name in ("check_totp", "check_recovery_code"):
        real = getattr(second_factor.mfa, name)

        def check(rt, whose, code, real=real):
            codes.append(code)
            return real(rt, whose, code)

        monkeypatch.setattr(second_factor.mfa, name, check)
    return codes


def codes_of(answers):
    return Counter(answer.code for answer in answers)


@pytest.mark.parametrize("method", ["totp", RECOVERY])
def test_of_32_right_codes_exactly_one_opens_a_session(
    rt, app, api, user, enabled, looked_at, method
):
    code = enabled.app.code() if method == "totp" else enabled.recovery_codes[0]
    flow_token = start_login(api, user)
    answers = run_concurrently([lambda: verify(ApiClient(app), flow_token, code, method)] * 32)
    assert codes_of(answers) == {"success": 1, INVALID: 31}
    assert count(rt, LoginSession) == 1
    assert len(looked_at) <= 5
    assert [a.set_cookies for a in answers if a.status != 200] == [{}] * 31


@pytest.mark.parametrize("before", [0, 3])
def test_of_32_wrong_codes_exactly_five_are_judged(rt, app, api, user, enabled, looked_at, before):
    flow_token, code = start_login(api, user), enabled.app.wrong_code()
    for _ in range(before):
        verify(api, flow_token, code).fails(401, WRONG)
    answers = run_concurrently([lambda: verify(ApiClient(app), flow_token, code)] * 32)
    assert codes_of(answers) == {WRONG: 4 - before, EXCEEDED: 1, INVALID: 27 + before}
    assert len(looked_at) == 5
    assert len(audit_rows(rt, "user_mfa_challenge_failed")) == 5
    verify(api, flow_token, enabled.app.code()).fails(401, INVALID)


def test_of_32_malformed_codes_exactly_five_are_counted(rt, app, api, user, enabled):
    flow_token = start_login(api, user)
    answers = run_concurrently([lambda: verify(ApiClient(app), flow_token, "1")] * 32)
    assert codes_of(answers) == {WRONG: 4, EXCEEDED: 1, INVALID: 27}


def test_simultaneous_guesses_at_many_logins_keep_to_the_accounts_limit(
    rt, app, api, user, enabled, looked_at
):
    """Ten guesses, however many logins wait."""
    flow_tokens = [start_login(api, user) for _ in range(4)]
    code = enabled.app.wrong_code()
    jobs = [lambda f=f: verify(ApiClient(app), f, code) for f in flow_tokens * 8]
    answers = run_concurrently(jobs)
    assert len(looked_at) == 10
    assert set(codes_of(answers)) <= {WRONG, EXCEEDED, INVALID, "rate_limited"}


def test_of_32_requests_that_are_no_guess_none_spends_an_attempt(rt, app, api, user, enabled):
    flow_token = start_login(api, user)
    jobs = [lambda: verify(ApiClient(app), flow_token, "12345678", EMAIL)] * 32
    assert set(codes_of(run_concurrently(jobs))) <= {"auth.mfa_factor_required", INVALID}
    for _ in range(4):
        verify(api, flow_token, enabled.app.wrong_code()).fails(401, WRONG)
    for _ in range(6):
        verify(api, flow_token, "12345678", EMAIL).fails(401, "auth.mfa_factor_required")
    verify(api, flow_token, enabled.app.code()).ok()


@pytest.mark.parametrize("method", ["totp", RECOVERY])
def test_of_one_code_on_many_logins_at_once_one_succeeds(rt, app, api, user, enabled, method):
    code = enabled.app.code() if method == "totp" else enabled.recovery_codes[0]
    flow_tokens = [start_login(api, user) for _ in range(4)]
    jobs = [lambda f=f: verify(ApiClient(app), f, code, method) for f in flow_tokens]
    answers = run_concurrently(jobs)
    loser = WRONG if method == "totp" else "auth.mfa_recovery_code_used"
    assert codes_of(answers) == {"success": 1, loser: 3}
    assert count(rt, LoginSession) == 1
    used = count(rt, MfaRecoveryCode, MfaRecoveryCode.used_at.is_not(None))
    assert used == (1 if method == RECOVERY else 0)


def test_a_right_code_among_wrong_ones_opens_one_session_or_none(rt, app, api, user, enabled):
    right, wrong = enabled.app.code(), enabled.app.wrong_code()
    flow_token = start_login(api, user)
    codes = [right if number % 4 == 0 else wrong for number in range(16)]
    answers = run_concurrently([lambda c=c: verify(ApiClient(app), flow_token, c) for c in codes])
    assert count(rt, LoginSession) == codes_of(answers)["success"] <= 1


# --- codes by e-mail ---------------------------------------------------------------------------


@pytest.fixture
def mailed(rt, api, user):
    """A login of an account without TOTP, and the code that was sent for it."""
    with RecordingSmtpServer() as sink:
        use_smtp(rt, sink.port)
        configure(rt, auth_email_code_login_enabled=True)
        flow_token = start_login(api, user)
        send_code(api, flow_token).ok()
        [code] = re.findall(r"\b\d{8}\b", text_of(sink.received[-1].message))
    return flow_token, code


@pytest.mark.parametrize("attempt", range(3))
def test_of_32_right_email_codes_exactly_one_opens_a_session(rt, app, mailed, attempt):
    flow_token, code = mailed
    answers = run_concurrently([lambda: verify(ApiClient(app), flow_token, code, EMAIL)] * 32)
    assert codes_of(answers) == {"success": 1, INVALID: 31}
    assert count(rt, LoginSession) == 1
    assert [a.set_cookies for a in answers if a.status != 200] == [{}] * 31
    assert len(audit_rows(rt, "user_mfa_challenge_success")) == 1


def test_of_32_wrong_email_codes_exactly_five_count(rt, app, api, mailed):
    flow_token, code = mailed
    answers = run_concurrently(
        [lambda: verify(ApiClient(app), flow_token, wrong(code), EMAIL)] * 32
    )
    assert codes_of(answers) == {WRONG: 4, EXCEEDED: 1, INVALID: 27}
    counted = [
        json.loads(entry.details)["attempt_count"]
        for entry in audit_rows(rt, "user_mfa_challenge_failed")
    ]
    assert sorted(counted) == [1, 2, 3, 4, 5]
    verify(api, flow_token, code, EMAIL).fails(401, INVALID)
    assert count(rt, LoginSession) == 0


def test_two_methods_at_once_open_one_session(rt, app, api, user, mailed, clock):
    """One login, two right codes: the login is what is good once."""
    flow_token, code = mailed
    configure(rt, auth_email_code_login_allow_totp_fallback=True)
    enabled = give_totp(rt, user, clock)
    typed = [
        (code, EMAIL),
        (enabled.app.code(), "totp"),
        (enabled.recovery_codes[0], RECOVERY),
    ]
    jobs = [lambda t=t: verify(ApiClient(app), flow_token, *t) for t in typed]
    assert codes_of(run_concurrently(jobs)) == {"success": 1, INVALID: 2}
    assert count(rt, LoginSession) == 1


# --- a code instead of a password ----------------------------------------------------------------


@pytest.fixture
def sign_in(rt, api, user):
    """A sign-in that waits for the code that was mailed."""
    email_code.switch_on(rt)
    return email_code.mailed_code(rt, api, user)


def test_of_32_right_codes_to_sign_in_with_one_opens_a_session(rt, app, sign_in):
    answers = run_concurrently([lambda: email_code.finish(ApiClient(app), *sign_in)] * 32)
    assert codes_of(answers) == {"success": 1, INVALID: 31}
    assert count(rt, LoginSession) == 1
    assert [a.set_cookies for a in answers if a.status != 200] == [{}] * 31
    assert len(audit_rows(rt, "user_email_code_sign_in")) == 1


def test_of_32_right_codes_one_leads_to_the_second_step(rt, app, user, enabled, sign_in):
    answers = run_concurrently([lambda: email_code.finish(ApiClient(app), *sign_in)] * 32)
    assert codes_of(answers) == {"success": 1, INVALID: 31}
    assert len(audit_rows(rt, "user_email_code_sign_in")) == 1


@pytest.mark.parametrize("is_known", [True, False])
def test_of_32_wrong_codes_to_sign_in_with_five_are_judged(rt, app, api, user, sign_in, is_known):
    flow_token, code = sign_in
    if not is_known:
        flow_token = email_code.start(api, "nobody@example.com")
    jobs = [lambda: email_code.finish(ApiClient(app), flow_token, wrong(code))] * 32
    assert codes_of(run_concurrently(jobs)) == {WRONG: 4, EXCEEDED: 1, INVALID: 27}
    email_code.finish(api, flow_token, code).fails(401, INVALID)
    assert count(rt, LoginSession) == 0


def test_of_simultaneous_starts_one_mails(rt, app, user):
    email_code.switch_on(rt)
    run_concurrently([lambda: email_code.start(ApiClient(app), user.email)] * 16)
    assert len(email_code.mails(rt)) == 1


# --- real workers --------------------------------------------------------------------------------


@pytest.fixture
def owner(live):
    make_user(live.rt, username="root", role="admin")
    return make_user(live.rt)


@pytest.fixture
def live_enabled(live, owner):
    return give_totp(live.rt, owner, Clock())


def test_of_32_right_codes_at_several_workers_exactly_one_opens_a_session(
    live, owner, live_enabled
):
    with live.clients(32) as clients:
        assert len({client.worker() for client in clients}) == 2
        flow_token, code = start_login(clients[0], owner), live_enabled.app.code()
        answers = run_concurrently([lambda c=c: verify(c, flow_token, code) for c in clients])
        assert codes_of(answers) == {"success": 1, INVALID: 31}
        assert count(live.rt, LoginSession) == 1
        [winner] = [c for c, answer in zip(clients, answers, strict=True) if answer.status == 200]
        winner.me().ok()


def test_of_32_wrong_codes_at_several_workers_exactly_five_count(live, owner, live_enabled):
    with live.clients(32) as clients:
        flow_token, code = start_login(clients[0], owner), live_enabled.app.wrong_code()
        answers = run_concurrently([lambda c=c: verify(c, flow_token, code) for c in clients])
        assert codes_of(answers) == {WRONG: 4, EXCEEDED: 1, INVALID: 27}
        verify(clients[0], flow_token, live_enabled.app.code()).fails(401, INVALID)


def test_one_recovery_code_on_two_logins_at_two_workers_opens_one_session(
    live, owner, live_enabled
):
    with live.client_on_each_worker() as clients:
        for code in live_enabled.recovery_codes[:4]:
            waiting = [(client, start_login(client, owner)) for client in clients]
            jobs = [lambda c=c, f=f, code=code: verify(c, f, code, RECOVERY) for c, f in waiting]
            answers = run_concurrently(jobs)
            assert codes_of(answers) == {"success": 1, "auth.mfa_recovery_code_used": 1}


def test_a_waiting_login_outlives_the_worker_that_opened_it(live, owner, live_enabled):
    with live.client() as client:
        flow_token = start_login(client, owner)
        verify(client, flow_token, live_enabled.app.wrong_code()).fails(401, WRONG)
        os.kill(client.worker(), signal.SIGKILL)
    live.wait()
    with live.client() as client:
        for _ in range(3):
            verify(client, flow_token, live_enabled.app.wrong_code()).fails(401, WRONG)
        verify(client, flow_token, live_enabled.app.code()).ok()
        client.me().ok()


def test_switches_are_seen_by_every_worker(live, owner, live_enabled):
    with live.client_on_each_worker() as clients:
        flow_token = start_login(clients[0], owner)
        configure(live.rt, auth_password_login_enabled=False)
        for client in clients:
            eventually(
                lambda c=client: not c.post("/auth/check").ok()["password_login_enabled"],
                "the switch",
            )
            answer = verify(client, flow_token, live_enabled.app.code())
            answer.fails(403, "auth.password_login_disabled")
