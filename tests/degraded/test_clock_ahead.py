"""A clock that was two days ahead for a minute, and is right again.

What was written meanwhile is dated in the future. It delays nobody, vouches for nothing, and what
was to last minutes or hours is over (docs/operations.md, "The clock").
"""

import re
from contextlib import contextmanager
from datetime import timedelta

import pytest

from app.audit import hourly
from app.audit.models import AuditHour
from app.core.access import TokenExpired, TokenInvalid
from app.core.clock import SKEW
from app.events.streams import Permits
from app.external_auth.drivers import id_token
from app.external_auth.errors import ProviderRejected
from app.installation import cleanup
from app.mfa import totp
from app.own_data import erasure
from app.sessions import access_token
from app.store import flow_store
from tests.support.authenticator import Authenticator
from tests.support.challenge import give_totp, send_code, start_login, verify
from tests.support.factories import audit_rows, configure, count, make_user
from tests.support.mailbox import text_of
from tests.support.outbox import use_smtp
from tests.support.passwords import confirm, request
from tests.support.smtp import RecordingSmtpServer

pytestmark = pytest.mark.both_databases

AHEAD = timedelta(days=2)


@pytest.fixture
def wrong(clock):
    """A span in which the clock is ahead."""

    @contextmanager
    def span():
        clock.turn(days=2)
        yield
        clock.turn(days=-2)

    return span


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("seconds", "is_ahead"),
    [(-1, False), (0, False), (5, False), (5.001, True), (60, True), (172_800, True)],
)
def test_a_moment_is_ahead_if_it_lies_further_than_clocks_are_apart(clock, seconds, is_ahead):
    assert SKEW.total_seconds() == 5
    assert clock.is_ahead(clock.now() + timedelta(seconds=seconds)) is is_ahead


# --- mailed links ---------------------------------------------------------------------------------


def test_a_reset_is_mailed_again_and_the_link_from_then_is_over(api, user, mailbox, wrong):
    with wrong():
        request(api, user.email).ok()
    early = mailbox.token(mailbox.only())
    confirm(api, early).fails(410, "auth.contact_verification_expired")
    request(api, user.email).ok()
    confirm(api, mailbox.token(mailbox.only())).ok()
    confirm(api, early).fails(400, "auth.contact_verification_invalid")


def test_the_address_can_be_changed_again(api, user, mailbox, wrong):
    body = {"new_email": "new@example.com"}
    with wrong():
        api.login(user).ok()
        api.post("/auth/email/change", body).ok()
    api.login(user).ok()
    mailbox.read()
    api.post("/auth/email/change", body).ok()
    assert [str(message["To"]) for message in mailbox.read()] == ["new@example.com"]
    api.post("/auth/email/change", body).fails(429, "rate_limited")


def test_mails_are_sent_again_to_who_waits(api, rt, line, mailbox, wrong):
    waiting = make_user(rt, activated=False, verified=False)
    make_user(rt, role="admin")
    resend = {"identifier": waiting.username}
    with wrong():
        api.post("/auth/register/resend", resend).ok()
        made = line.json("invitations", "create", "guest@example.com")
    early = [mailbox.token(message) for message in mailbox.read()]
    api.get(f"/auth/contact-verification/confirm?token={early[0]}")
    api.login(waiting).fails(403, "auth.pending_activation")
    api.post("/auth/register/resend", resend).ok()
    line.json("invitations", "resend", str(made["id"]))
    assert len(mailbox.read()) == 2


# --- guesses and codes ----------------------------------------------------------------------------


def test_wrong_passwords_from_then_lock_nobody_out(api, rt, user, wrong):
    with wrong():
        for _ in range(10):
            api.login(user.username, "not the password").fails(401, "auth.credentials_failed")
        api.login(user).fails(429, "rate_limited")
    assert rt.limits.attempts.find_failures(f"user:{user.id}").locked_until is None
    api.login(user.username, "not the password").fails(401, "auth.credentials_failed")
    assert rt.limits.attempts.find_failures(f"user:{user.id}").attempts == 1
    assert len(audit_rows(rt, "user_login_failed")) == 11
    api.login(user).ok()


def test_a_code_of_an_app_is_taken_and_each_only_once(api, rt, user, clock, wrong):
    app = give_totp(rt, user, clock).app
    with wrong():
        verify(api, start_login(api, user), app.code()).ok()
    flow_token = start_login(api, user)
    verify(api, flow_token, app.code()).ok()
    verify(api, start_login(api, user), app.code()).fails(401, "auth.mfa_code_invalid")


@pytest.mark.sqlite
@pytest.mark.parametrize(("steps", "is_taken"), [(-1, True), (0, False), (1, False), (2, True)])
def test_a_step_that_cannot_have_been_used_yet_does_not_count(clock, steps, is_taken):
    """The present code, after one that was used so many steps from now."""
    app = Authenticator(totp.new_secret(), clock)
    now = int(clock.now().timestamp()) // totp.STEP_SECONDS
    found = totp.matching_step(app.secret, app.code(), clock.now(), after=now + steps)
    assert found == (now if is_taken else None)


def test_a_mailed_code_is_sent_again_and_the_one_from_then_is_over(api, rt, user, wrong):
    with RecordingSmtpServer() as server:
        use_smtp(rt, server.port)
        configure(rt, auth_email_code_login_enabled=True)
        with wrong():
            early = start_login(api, user)
            send_code(api, early).ok()
        send_code(api, early).fails(401, "auth.mfa_flow_expired")
        flow_token = start_login(api, user)
        send_code(api, flow_token).ok()
        [code] = re.findall(r"\b\d{8}\b", text_of(server.received[-1].message))
        verify(api, flow_token, code, "email_code").ok()


# --- what vouches ---------------------------------------------------------------------------------


def test_a_sign_in_from_then_is_no_recent_one(api, user, wrong):
    with wrong():
        api.login(user).ok()
    api.refresh().ok()
    assert api.get("/auth/confirmation").ok()["is_fresh"] is False
    api.delete("/auth/account", {"confirm": user.username}).fails(412, "precondition_failed")
    api.post("/auth/confirmation", {"method": "password", "password": user.password}).ok()
    assert api.get("/auth/confirmation").ok()["is_fresh"] is True


def test_an_access_token_from_then_is_renewed(api, user, wrong):
    with wrong():
        api.login(user).ok()
    api.me().fails(401, "auth.token_expired")
    api.refresh().ok()
    api.me().ok()


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("seconds", "error"),
    [(-900, None), (-906, TokenExpired), (0, None), (5, None), (6, TokenExpired)],
)
def test_an_access_token_is_of_now(rt, clock, seconds, error):
    issued_at, life = clock.now() + timedelta(seconds=seconds), timedelta(seconds=900)
    token = access_token.issue(rt.keyring, "session", 1, issued_at, life)
    if error is None:
        assert access_token.read(rt.keyring, token, clock.now())[0] == "session"
        return
    with pytest.raises((TokenExpired, TokenInvalid)) as refused:
        access_token.read(rt.keyring, token, clock.now())
    assert type(refused.value) is error
    assert access_token.read(rt.keyring, token, clock.now(), ignore_expiry=True)[0] == "session"


def test_a_token_that_was_spent_then_is_a_replay_now(api, rt, user, wrong):
    with wrong():
        api.login(user).ok()
        thief = api.twin()
        api.refresh().ok()
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("ago", "is_recent"), [(0, True), (300, True), (301, False), (-300, True), (-301, False)]
)
def test_a_sign_in_at_a_provider_is_recent_within_minutes(clock, ago, is_recent):
    now = clock.now().timestamp()
    if is_recent:
        id_token.require_recent({"auth_time": now - ago}, now)
        return
    with pytest.raises(ProviderRejected):
        id_token.require_recent({"auth_time": now - ago}, now)


# --- what lasts minutes ---------------------------------------------------------------------------


def test_a_step_of_a_sign_in_from_then_is_over(api, rt, user, clock, wrong):
    app = give_totp(rt, user, clock).app
    with wrong():
        flow_token = start_login(api, user)
    verify(api, flow_token, app.code()).fails(401, "auth.mfa_flow_expired")


def test_what_is_kept_for_one_attempt_from_then_is_gone(rt, wrong):
    life = timedelta(minutes=5)
    with wrong():
        flow_store.put_once(rt, "early", {"a": 1}, life)
    flow_store.put_once(rt, "right", {"a": 1}, life)
    assert flow_store.take_once(rt, "early") is None
    assert flow_store.take_once(rt, "right") == {"a": 1}


def test_streams_from_then_take_nobodys_place(rt, wrong):
    early, right = Permits(rt), Permits(rt)
    early.join()
    right.join()
    most = rt.config.sse_per_user
    with wrong():
        assert all(early.acquire(7) for _ in range(most))
        assert early.acquire(7) is None
    assert all(right.acquire(7) for _ in range(most))
    assert right.acquire(7) is None


# --- housekeeping ---------------------------------------------------------------------------------


def test_housekeeping_takes_its_turn(rt):
    """Redis tells by its own clock how long a turn lasts."""
    assert cleanup.clean_up_if_due(rt)
    assert not cleanup.clean_up_if_due(rt)
    rt.redis.client.pexpire(cleanup.CLEANUP_LOCK_KEY, AHEAD)
    assert cleanup.clean_up_if_due(rt)
    assert not cleanup.clean_up_if_due(rt)


def test_the_traces_of_an_account_that_was_deleted_then_are_removed(api, rt, user, wrong):
    with wrong():
        api.login(user).ok()
        api.delete("/auth/account", {"confirm": user.username}).ok()
    assert erasure.scrub(rt) > 0


def test_hours_go_on_being_counted(api, rt, user, clock):
    later = (clock.now() + AHEAD).replace(minute=0, second=0, microsecond=0)
    with rt.transaction() as session:
        session.add(AuditHour(hour=later, action="user_login", n=1))
    api.login(user).ok()
    clock.advance(hours=2)
    assert hourly.count_finished_hours(rt) == 1
    assert count(rt, AuditHour) == 2
