"""An identity whose owner is told by a password."""

from unittest.mock import Mock

import pytest
from redis.exceptions import ConnectionError

from app.core.access import AccountDisabled
from app.core.errors import DatabaseUnavailable
from app.external_auth.sign_in import linking, pending
from app.sessions.models import LoginSession
from app.store.flow_store import FlowStore
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, verify
from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    delete_provider,
    link,
    links,
    sign_in,
    signs_in,
    wait_for_account,
)
from tests.support.factories import (
    audit_rows,
    change_user,
    configure,
    count,
    make_user,
)
from tests.support.mailbox import text_of

PATH = "/auth/external-auth/password-link"
INVALID = "auth.contact_verification_invalid"
WRONG = "auth.credentials_failed"


@pytest.fixture
def provider(rt, user):
    return add_provider(rt, auto_provision_enabled=True)


@pytest.fixture
def flow(rt, provider):
    return wait_for_account(rt, provider, display_name="Jane Doe", email="said@example.com")


def submit(client, flow_token, who, password=None, **options):
    body = {
        "flow_token": flow_token,
        "identifier": who if isinstance(who, str) else who.username,
        "password": who.password if password is None else password,
    }
    return client.post(PATH, body, **options)


@pytest.mark.both_databases
@pytest.mark.parametrize("spelled", ["username", "email"])
def test_the_right_password_links_and_signs_in(rt, api, user, flow, spelled):
    identifier = f"  {getattr(user, spelled).upper()} "
    answer = submit(api, flow, identifier, user.password)
    assert answer.ok() == {"status": "authenticated", "expires_in": 900}
    assert set(answer.set_cookies) == {
        "service_access",
        "service_refresh",
        "service_csrf",
        "service_device",
    }
    assert api.me().ok()["id"] == user.id
    [row] = links(rt)
    assert (row.user_id, row.subject) == (user.id, "new")
    assert (row.email_snapshot, row.display_name_snapshot) == (None, "Jane Doe")
    [entry] = audit_rows(rt, "user_external_auth_link")
    assert entry.user_id == user.id
    [entry] = audit_rows(rt, "user_external_auth_login")
    assert '"linked": true' in entry.details


def test_the_whole_way_from_the_provider(rt, api, user, fake, corp):
    flow_token = asks_for_address(sign_in(api, fake))
    submit(api, flow_token, user).ok()
    api.post("/auth/logout").ok()
    signs_in(sign_in(api, fake))
    assert api.me().ok()["id"] == user.id


def test_a_flow_is_good_once(rt, api, user, flow):
    submit(api, flow, user).ok()
    submit(api, flow, user).fails(400, INVALID)
    assert len(links(rt)) == 1


def test_a_mail_that_was_sent_before_is_void(api, user, flow, mailbox):
    body = {"flow_token": flow, "email": "x@example.com"}
    api.post("/auth/external-auth/email-verification/start", body).ok()
    token = mailbox.token(mailbox.only())
    submit(api, flow, user).ok()
    notice = mailbox.only()
    assert notice["To"] == user.email
    assert "was added. It can be used to sign in without a password." in text_of(notice)
    answer = api.get(f"/auth/external-auth/email-verification/confirm?token={token}")
    assert answer.headers["Location"].endswith("/login?external_auth=email_verification_invalid")


def test_a_second_factor_is_asked_for_after_linking(rt, api, user, flow):
    enabled = give_totp(rt, user)
    data = submit(api, flow, user).ok()
    assert data.keys() == {"status", "flow_token", "expires_in", "methods", "remember_device_secs"}
    assert (data["status"], data["expires_in"]) == ("mfa_required", 300)
    assert api.cookies == {}
    assert len(links(rt)) == 1
    configure(rt, auth_password_login_enabled=False)  # a password was the first factor
    code = enabled.app.code()
    verify(api, data["flow_token"], code).fails(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    verify(api, data["flow_token"], code).ok()


def test_a_flow_whose_login_failed_after_linking_can_be_tried_again(
    rt, api, user, flow, monkeypatch
):
    enabled = give_totp(rt, user)
    with monkeypatch.context() as away:
        away.setattr(FlowStore, "open", Mock(side_effect=ConnectionError("Redis is away")))
        submit(api, flow, user).fails(503, "internal_server_error")
    assert len(links(rt)) == 1
    data = submit(api, flow, user).ok()
    verify(api, data["flow_token"], enabled.app.code()).ok()
    assert len(links(rt)) == 1
    submit(api, flow, user).fails(400, INVALID)


def test_why_a_login_failed_after_linking_is_told_though_the_database_fails_then(
    rt, api, user, flow, monkeypatch
):
    def fail(*_, **__):
        monkeypatch.setattr(rt.database, "transaction", Mock(side_effect=DatabaseUnavailable))
        raise AccountDisabled

    monkeypatch.setattr(linking, "complete", fail)
    submit(api, flow, user).fails(403, "auth.account_disabled")


def test_a_forced_password_change_is_told(rt, api, user, flow):
    change_user(rt, user, must_change_password=True)
    assert submit(api, flow, user).ok()["status"] == "password_change_required"
    api.get("/auth/sessions").fails(403, "auth.password_change_required")


def test_an_identity_that_is_the_accounts_already_is_only_used(rt, api, user, provider, clock):
    link(rt, user, provider, subject="new", email_snapshot="kept@example.com")
    flow_token = wait_for_account(rt, provider)
    later = clock.advance(hours=1)
    flow_token = wait_for_account(rt, provider)
    submit(api, flow_token, user).ok()
    [row] = links(rt)
    assert (row.last_login_at, row.email_snapshot) == (later, "kept@example.com")
    assert audit_rows(rt, "user_external_auth_link") == []


def test_refusals_come_in_their_order(rt, api, user, provider, flow):
    """Everything is wrong at first; one thing after the other is put right."""
    other = make_user(rt)
    link(rt, other, provider, subject="new")
    configure(rt, auth_password_login_enabled=False)
    change_provider(rt, provider, enabled=False)
    change_user(rt, user, status="disabled", email_verified_at=None)
    evil = {"Origin": "https://evil.example"}
    submit(api, "", user, "", headers=evil).fails(403, "auth.request_origin_untrusted")
    submit(api, "", user, "").fails(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    submit(api, "", user, "").fails(400, "bad_request")
    submit(api, "oev_unknown", user, "").fails(400, "bad_request")
    submit(api, "oev_unknown", user, "wrong").fails(400, INVALID)
    submit(api, flow, user, "wrong").fails(403, "external_auth.provider_disabled")
    change_provider(rt, provider, enabled=True)
    submit(api, flow, "nobody", "wrong").fails(401, WRONG)
    submit(api, flow, user, "wrong").fails(401, WRONG)
    submit(api, flow, user).fails(403, "auth.account_disabled")
    change_user(rt, user, status="active")
    submit(api, flow, user).fails(403, "auth.pending_activation")
    change_user(rt, user, email_verified_at=rt.clock.now())
    submit(api, flow, user).fails(403, "external_auth.policy_denied")
    submit(api, flow, other).ok()
    assert len(links(rt)) == 1


def test_an_account_has_one_identity_per_provider(rt, api, user, provider, flow):
    link(rt, user, provider, subject="another")
    submit(api, flow, user).fails(409, "conflict")
    assert [row.subject for row in links(rt)] == ["another"]
    assert count(rt, LoginSession) == 0


@pytest.mark.parametrize(
    "missing", [{"identifier": "  "}, {"password": ""}, {"flow_token": "a b"}, {"password": 7}]
)
def test_malformed_fields_are_refused(api, user, flow, missing):
    body = {"flow_token": flow, "identifier": user.username, "password": user.password}
    api.post(PATH, body | missing).fails(400, "bad_request")
    for name in body:
        rest = {key: value for key, value in body.items() if key != name}
        api.post(PATH, rest).fails(400, "bad_request")


def test_passwords_are_not_trimmed(api, user, flow):
    submit(api, flow, user, f" {user.password} ").fails(401, WRONG)


def test_a_provisioned_account_has_no_password_to_link_by(rt, api, provider, flow):
    bare = make_user(rt, password=None)
    submit(api, flow, bare, "").fails(400, "bad_request")
    submit(api, flow, bare, "any password").fails(401, WRONG)


def test_an_overdue_identity_is_refused(rt, api, user, flow, clock):
    clock.advance(seconds=1800)
    submit(api, flow, user).fails(400, INVALID)


def test_guesses_count_like_failed_logins(rt, app, api, user, flow):
    for number in range(10):
        if number % 2:
            api.login(user, "wrong").fails(401, WRONG)
        else:
            submit(api, flow, user, "wrong").fails(401, WRONG)
    submit(api, flow, user).fails(429, "rate_limited")
    ApiClient(app).login(user).fails(429, "rate_limited")
    assert links(rt) == []


@pytest.mark.parametrize(
    ("closed", "status", "code"),
    [
        ({"status": "disabled"}, 403, "auth.account_disabled"),
        ({"email_verified_at": None}, 403, "auth.pending_activation"),
        ({}, 409, "conflict"),
    ],
)
def test_a_right_password_is_no_failure_where_nothing_can_be_linked(
    rt, app, api, user, provider, flow, closed, status, code
):
    if closed:
        change_user(rt, user, **closed)
    else:
        link(rt, user, provider, subject="another")
    for _ in range(9):
        submit(api, flow, user, "wrong").fails(401, WRONG)
    for _ in range(11):
        submit(api, flow, user).fails(status, code)
    change_user(rt, user, status="active", email_verified_at=rt.clock.now())
    stranger = ApiClient(app)
    stranger.login(user, "wrong").fails(401, WRONG)
    stranger.login(user).fails(429, "rate_limited")


def test_success_clears_the_count(rt, api, user, provider, flow):
    for _ in range(9):
        submit(api, flow, user, "wrong").fails(401, WRONG)
    submit(api, flow, user).ok()
    for _ in range(9):
        api.login(user, "wrong").fails(401, WRONG)
    api.login(user).ok()


def test_an_account_that_changes_while_its_password_is_checked(rt, api, user, flow, monkeypatch):
    """A password change that is committed after the check must keep the old password's link out."""
    real = rt.passwords.check

    def check(password, stored, *samples):
        verdict = real(password, stored, *samples)
        change_user(rt, user, session_version=7)
        return verdict

    monkeypatch.setattr(rt.passwords, "check", check)
    submit(api, flow, user).fails(401, WRONG)
    assert links(rt) == []


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_provider_that_is_removed_this_moment(
    rt, api, user, provider, flow, monkeypatch, is_seen
):
    """Before it was looked at, or after: its identities went with it."""
    real = pending.provider_of

    def provider_of(reader, waiting):
        found = real(reader, waiting)
        delete_provider(rt, provider)
        return found if is_seen else real(reader, waiting)

    monkeypatch.setattr(pending, "provider_of", provider_of)
    submit(api, flow, user).fails(400, INVALID)


def test_a_browser_needs_no_token_of_its_own(browser, user, flow):
    submit(browser, flow, user).ok()
