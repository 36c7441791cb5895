"""An identity whose owner is told by a mailbox."""

import re
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from app.core.config import Bucket
from app.external_auth.models import PendingIdentity
from app.external_auth.sign_in import linking
from app.login import completion
from app.mail import service as mail_service
from app.sessions.models import LoginSession
from app.users.models import User
from tests.support.api import BASE, ORIGIN, ApiClient
from tests.support.challenge import give_totp, verify
from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    delete_provider,
    fails,
    link,
    links,
    location,
    sign_in,
    signs_in,
    told,
    wait_for_account,
)
from tests.support.factories import (
    audit_rows,
    change_user,
    configure,
    count,
    make_user,
    remove_storage_route,
)
from tests.support.mailbox import text_of

START = "/auth/external-auth/email-verification/start"
CONFIRM = "/auth/external-auth/email-verification/confirm"
INVALID = "auth.contact_verification_invalid"
ADDRESS = "jane@example.com"


@pytest.fixture
def provider(rt, admin):
    return add_provider(rt, display_name="Corp <SSO>", auto_provision_enabled=True)


@pytest.fixture
def flow(rt, provider):
    """The token of an identity that waits."""
    return wait_for_account(rt, provider, display_name="Jane Doe", preferred_username="jane")


@pytest.fixture
def owner(rt, admin):
    return make_user(rt, username="own", email=ADDRESS)


def ask(client, flow_token, email=ADDRESS, **options):
    return client.post(START, {"flow_token": flow_token, "email": email}, **options)


def follow(client, token):
    return client.get(f"{CONFIRM}?token={token}")


@pytest.fixture
def token(api, flow, mailbox):
    """The token of a mail to Jane."""
    ask(api, flow).ok()
    return mailbox.token(mailbox.only())


# --- asking for the mail -----------------------------------------------------------------------


def test_a_mail_with_a_link_is_sent(rt, api, flow, mailbox, clock):
    clock.advance(minutes=5, seconds=30)
    data = ask(api, f"  {flow} ", " Jane@Example.COM ").ok()
    assert data == {"message": "external auth email verification email sent"}
    mail = mailbox.only()
    assert mail["To"] == ADDRESS
    text = text_of(mail)
    assert "Corp <SSO>" in text
    assert "25 minutes" in text
    link_ = mailbox.link(mail)
    assert re.fullmatch(rf"{ORIGIN}{BASE}{CONFIRM}\?token=cv_[\w-]{{43}}", link_)
    html = mail.get_body(("html",)).get_content()
    assert "Corp &lt;SSO&gt;" in html
    assert "Corp <SSO>" not in html


def test_the_mail_is_in_the_language_of_the_browser_that_asks(api, flow, mailbox):
    ask(api, flow, headers={"Accept-Language": "de"}).ok()
    assert mailbox.only()["Subject"] == "Gatehouse: E-Mail-Adresse bestätigen"


def test_the_mail_says_what_its_link_opens(api, flow, mailbox):
    """Who confirms for somebody else lets them in, and must be able to know that."""
    ask(api, flow).ok()
    text = " ".join(text_of(mailbox.only()).split())
    assert f"account at Corp <SSO> signs in to the account that {ADDRESS} has at" in text
    assert "If that was not you, do not open the link" in text


def test_a_whole_life_is_told_as_30_minutes(api, flow, mailbox):
    ask(api, flow).ok()
    assert "30 minutes" in text_of(mailbox.only())


def test_an_identity_has_one_mail(api, flow, mailbox):
    ask(api, flow).ok()
    for email in (ADDRESS, "other@example.com"):
        ask(api, flow, email).fails(400, INVALID)
    mailbox.only()


def test_it_can_be_asked_from_another_browser(app, flow, mailbox):
    ask(ApiClient(app), flow).ok()
    mailbox.only()


@pytest.mark.parametrize("flow_token", ["", "   ", "a b", "a\tb", "x" * 129, "ü" * 65], ids=str)
def test_what_can_be_no_flow_token_is_refused_as_such(api, flow, flow_token):
    ask(api, flow_token).fails(400, "bad_request")


@pytest.mark.parametrize("flow_token", ["oev_" + "0" * 32, "x" * 128, "mfa_x"])
def test_an_unknown_flow_token_is_refused(api, flow, flow_token):
    ask(api, flow_token).fails(400, INVALID)


@pytest.mark.parametrize(
    "email", ["", "jane", "jane@", "jane@localhost", "a@b@c.example", "a\n@b.c"]
)
def test_what_is_no_address_is_refused(api, flow, email):
    ask(api, flow, email).fails(400, "bad_request")


def test_an_identity_waits_30_minutes(rt, provider, api, clock):
    flow_token = wait_for_account(rt, provider)
    clock.advance(seconds=1799)
    ask(api, flow_token).ok()
    flow_token = wait_for_account(rt, provider, "another")
    clock.advance(seconds=1800)
    ask(api, flow_token).fails(400, INVALID)


def test_refusals_come_in_their_order(rt, api, provider, flow, owner, mailbox):
    configure(rt, auth_allow_user_registration=False)
    change_provider(rt, provider, enabled=False, allowed_domains=["other.example"])
    change_user(rt, owner, status="disabled", email_verified_at=None)
    evil = {"Origin": "https://evil.example"}
    ask(api, flow, headers=evil).fails(403, "auth.request_origin_untrusted")
    ask(api, flow).fails(403, "external_auth.provider_disabled")
    change_provider(rt, provider, enabled=True)
    ask(api, flow).fails(403, "external_auth.policy_denied")
    change_provider(rt, provider, allowed_domains=None)
    ask(api, flow).fails(403, "auth.account_disabled")
    change_user(rt, owner, status="active")
    ask(api, flow).fails(403, "auth.pending_activation")
    change_user(rt, owner, email="another@example.com")
    ask(api, flow).fails(403, "auth.registration_disabled")
    configure(rt, auth_allow_user_registration=True)
    assert mailbox.read() == []
    ask(api, flow).ok()


def test_an_account_that_was_never_activated_is_told_so(rt, api, flow, owner):
    change_user(rt, owner, activated_at=None)
    ask(api, flow).fails(403, "auth.pending_activation")


def test_a_verified_owner_is_asked_while_registration_is_closed(rt, api, flow, owner):
    configure(rt, auth_allow_user_registration=False)
    ask(api, flow).ok()


def test_what_changes_before_the_mail_is_written_counts(rt, api, flow, owner, mailbox, monkeypatch):
    """Its limit is counted between the first look at the account and the transaction."""
    real = mail_service.limit_requested_mail

    def count(rt_, tier, whose):
        real(rt_, tier, whose)
        if tier == "external-mails-to":
            change_user(rt, owner, status="disabled")

    monkeypatch.setattr(mail_service, "limit_requested_mail", count)
    ask(api, flow).fails(403, "auth.account_disabled")
    assert mailbox.read() == []


def test_a_removed_provider_takes_its_identities_along(rt, api, provider, flow):
    delete_provider(rt, provider)
    ask(api, flow).fails(400, INVALID)


def test_an_identity_cannot_have_mails_sent_without_end(make_app, rt, provider, clock):
    api = ApiClient(make_app(anonymous_bucket=Bucket(per_second=1000, burst=1000)))
    for number in range(10):
        ask(api, wait_for_account(rt, provider), f"victim{number}@example.com").ok()
    answer = ask(api, wait_for_account(rt, provider)).fails(429, "rate_limited")
    assert 300 < answer.retry_after <= 360
    ask(api, wait_for_account(rt, provider, "somebody else")).ok()
    clock.advance(seconds=360)
    ask(api, wait_for_account(rt, provider)).ok()


def test_an_address_cannot_be_sent_mails_without_end(make_app, rt, provider, clock, mailbox):
    api = ApiClient(make_app(anonymous_bucket=Bucket(per_second=1000, burst=1000)))

    def ask_as(number, email):
        return ask(api, wait_for_account(rt, provider, f"identity {number}"), email)

    for number in range(10):
        ask_as(number, "Victim@Example.com" if number % 2 else "victim@example.com").ok()
    answer = ask_as(10, "victim@EXAMPLE.com").fails(429, "rate_limited")
    assert 300 < answer.retry_after <= 360
    ask_as(11, ADDRESS).ok()
    clock.advance(seconds=360)
    ask_as(12, "victim@example.com").ok()
    assert len(mailbox.read()) == 12


def test_what_is_refused_uses_no_mail_of_an_address_up(make_app, rt, provider, flow, mailbox):
    """Else whoever has an identity anywhere could keep somebody else's mail from being sent."""
    api = ApiClient(make_app(anonymous_bucket=Bucket(per_second=1000, burst=1000)))
    change_provider(rt, provider, allowed_domains=["other.example"])
    for number in range(11):
        other = wait_for_account(rt, provider, f"identity {number}")
        ask(api, other).fails(403, "external_auth.policy_denied")
    change_provider(rt, provider, allowed_domains=None)
    ask(api, flow).ok()
    mailbox.only()


def test_an_identity_cannot_ask_without_end_who_has_an_account(make_app, rt, flow):
    api = ApiClient(make_app(anonymous_bucket=Bucket(per_second=1000, burst=1000)))
    configure(rt, auth_allow_user_registration=False)
    for number in range(10):
        ask(api, flow, f"victim{number}@example.com").fails(403, "auth.registration_disabled")
    ask(api, flow, "victim10@example.com").fails(429, "rate_limited")


# --- following the link --------------------------------------------------------------------------


@pytest.mark.both_databases
def test_the_link_signs_the_owner_of_the_address_in(rt, api, token, owner, flow):
    answer = signs_in(follow(api, token), "/files")
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert api.me().ok()["id"] == owner.id
    [row] = links(rt)
    assert (row.user_id, row.subject, row.email_snapshot) == (owner.id, "new", ADDRESS)
    [entry] = audit_rows(rt, "user_external_auth_link")
    assert entry.user_id == owner.id
    [entry] = audit_rows(rt, "user_external_auth_login")
    assert '"linked": true, "auto_provisioned": false' in entry.details


@pytest.mark.both_databases
def test_the_link_makes_an_account_where_there_is_none(rt, api, token, clock):
    signs_in(follow(api, token), "/files")
    me = api.me().ok()
    assert (me["username"], me["email"], me["email_verified"]) == ("jane", ADDRESS, True)
    [entry] = audit_rows(rt, "user_external_auth_link")
    assert '"auto_provisioned": true' in entry.details


def test_the_whole_way_from_the_provider(rt, api, admin, fake, corp, mailbox):
    flow_token = asks_for_address(sign_in(api, fake, return_path="/x?y=z"), "/x?y=z")
    change_provider(rt, corp, auto_provision_enabled=True)
    ask(api, flow_token, "work@example.com").ok()
    signs_in(follow(api, mailbox.token(mailbox.only())), "/x?y=z")
    assert api.me().ok()["email"] == "work@example.com"
    api.post("/auth/logout").ok()
    signs_in(sign_in(api, fake))
    assert api.me().ok()["email"] == "work@example.com"


def test_an_identity_that_was_linked_to_the_account_meanwhile_signs_in(
    rt, api, provider, flow, token, owner
):
    link(rt, owner, provider, subject="new", email_snapshot="kept@example.com")
    signs_in(follow(api, token), "/files")
    assert api.me().ok()["id"] == owner.id
    [row] = links(rt)
    assert row.email_snapshot == "kept@example.com"


def test_an_address_that_was_given_up_this_moment_opens_no_account(
    rt, api, owner, token, monkeypatch
):
    """Between being found and being held the account may get another address."""
    change_user(rt, owner, email="moved@example.com")
    real = linking.find_account_by_email
    monkeypatch.setattr(
        linking, "find_account_by_email", lambda reader, _: real(reader, "moved@example.com")
    )
    signs_in(follow(api, token), "/files")
    me = api.me().ok()
    assert me["id"] != owner.id
    assert me["email"] == ADDRESS


@pytest.mark.parametrize("typed", ["", "%20%09"])
def test_without_a_token_that_is_told(api, typed):
    assert told(follow(api, typed)) == {"external_auth": "email_verification_missing"}
    assert told(api.get(CONFIRM)) == {"external_auth": "email_verification_missing"}


@pytest.mark.parametrize("typed", ["x", "cv_" + "0" * 32, "%00", "x" * 5000])
def test_an_unknown_token_is_invalid(rt, api, flow, typed, monkeypatch):
    # Who writes nonsense must not take turns with those who have something to write.
    monkeypatch.setattr(rt.database, "transaction", Mock(side_effect=AssertionError))
    assert told(follow(api, typed)) == {"external_auth": "email_verification_invalid"}


def test_the_flow_token_is_not_the_links(api, flow, token):
    assert told(follow(api, flow)) == {"external_auth": "email_verification_invalid"}


def test_a_link_works_once(rt, api, token):
    signs_in(follow(api, token), "/files")
    answer = follow(api.stranger(), token)
    assert location(answer) == "/login?external_auth=email_verification_invalid"
    assert answer.set_cookies == {}
    assert count(rt, LoginSession) == 1


def test_the_mail_does_not_prolong_the_flow(api, flow, mailbox, clock):
    clock.advance(minutes=20)
    ask(api, flow).ok()
    token = mailbox.token(mailbox.only())
    clock.advance(minutes=10)
    assert told(follow(api, token)) == {"external_auth": "email_verification_expired"}


def test_a_late_click_is_told_so_for_a_week(api, line, token, clock):
    clock.advance(minutes=30, days=7)
    assert line.json("cleanup")["pending_identities"] == 0
    assert told(follow(api, token)) == {"external_auth": "email_verification_expired"}
    clock.advance(seconds=1)
    assert line.json("cleanup")["pending_identities"] == 1
    assert told(follow(api, token)) == {"external_auth": "email_verification_invalid"}


def test_refusals_keep_the_link(rt, api, provider, token, owner):
    def refused(code):
        fails(follow(api, token), code)
        assert links(rt) == []

    change_provider(rt, provider, enabled=False, allowed_domains=["other.example"])
    change_user(rt, owner, status="disabled", email_verified_at=None)
    refused("external_auth.provider_disabled")
    change_provider(rt, provider, enabled=True)
    refused("external_auth.policy_denied")
    change_provider(rt, provider, allowed_domains=None)
    refused("auth.account_disabled")
    change_user(rt, owner, status="active")
    refused("auth.pending_activation")
    change_user(rt, owner, email="gone@example.com")
    configure(rt, auth_allow_user_registration=False)
    refused("auth.registration_disabled")
    configure(rt, auth_allow_user_registration=True)
    change_user(rt, owner, pending_email=ADDRESS)
    refused("auth.email_exists")
    change_user(rt, owner, pending_email=None)
    remove_storage_route(rt)
    refused("validation.system_not_initialized")
    assert count(rt, User) == 2


def test_another_identity_of_the_provider_keeps_the_link_out(rt, api, provider, token, owner):
    link(rt, owner, provider, subject="other")
    fails(follow(api, token), "conflict")
    assert len(links(rt)) == 1


def test_a_second_factor_is_asked_for(rt, api, token, owner, clock):
    enabled = give_totp(rt, owner)
    data = told(follow(api, token))
    assert (data["mfa"], data["return_path"]) == ("required", "/files")
    assert api.cookies == {}
    verify(api, data["flow"], enabled.app.code()).ok()


def test_a_forced_password_change_comes_first(rt, api, token, owner):
    change_user(rt, owner, must_change_password=True)
    signs_in(follow(api, token), "/force-password-change")


def test_a_session_that_cannot_be_opened_keeps_the_link(rt, api, token, owner, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(completion, "open_session", lambda *_, **__: None)
        fails(follow(api, token), "auth.credentials_failed")
    signs_in(follow(api, token), "/files")
    assert len(links(rt)) == 1


@pytest.mark.parametrize("is_asked_first", [True, False])
@pytest.mark.parametrize("how", ["a new password", "an operator"])
def test_what_ends_all_sessions_voids_the_link(
    rt, api, line, flow, admin, mailbox, how, is_asked_first
):
    """Else whoever read the mailbox for a moment could come back after the password's reset."""
    if is_asked_first:
        ask(api, flow).ok()
    owner = make_user(rt, email=ADDRESS)
    if not is_asked_first:
        ask(api, flow).ok()
    token = mailbox.token(mailbox.only())
    if how == "an operator":
        line("users", "revoke-sessions", owner.username)
    else:
        mine = api.stranger()
        mine.login(owner).ok()
        body = {"current_password": owner.password, "new_password": "quite another one"}
        mine.put("/auth/password", body).ok()
    for _ in range(2):
        assert told(follow(api, token)) == {"external_auth": "email_verification_invalid"}
    assert links(rt) == []
    assert api.cookies == {}


def test_a_link_that_an_older_version_mailed_is_good_after_the_upgrade(rt, api, token, owner):
    with rt.transaction() as session:
        session.execute(sa.update(PendingIdentity).values(owner_session_version=None))
    signs_in(follow(api, token), "/files")
    assert len(links(rt)) == 1


def test_the_owner_is_told_of_the_new_link(api, token, owner, mailbox):
    follow(api, token)
    notice = mailbox.only()
    assert notice["To"] == ADDRESS
    assert "A sign-in with Corp <SSO> was added." in text_of(notice)


def test_whose_account_is_made_by_the_link_needs_no_notice(api, token, mailbox):
    signs_in(follow(api, token), "/files")
    assert mailbox.read() == []


def test_a_look_at_the_link_uses_nothing_up(api, token):
    answer = api.call("HEAD", f"{CONFIRM}?token={token}")
    assert (answer.status, location(answer)) == (302, "/login")
    signs_in(follow(api, token), "/files")


def test_nothing_at_rest_opens_anything(rt, flow, token):
    with rt.reading() as connection:
        rows = str(connection.execute(sa.select(PendingIdentity.__table__.columns)).all())
        outbox = str(connection.execute(sa.text("SELECT * FROM mail_outbox")).all())
    for secret in (flow, token, flow[4:], token[3:]):
        assert secret not in rows
        assert secret not in outbox
