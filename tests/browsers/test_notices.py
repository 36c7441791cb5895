"""The mail about a sign-in by a browser that the account has not had."""

import pytest
import sqlalchemy as sa

from app.browsers.models import Browser
from app.mail.models import OutboxMail
from app.sessions import service
from app.users.models import User
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, start_login, verify
from tests.support.external import link, sign_in, wait_for_account
from tests.support.factories import change_user, configure, count, make_user
from tests.support.fake_provider import SUBJECT
from tests.support.mailbox import html_of, text_of
from tests.support.passkeys import Authenticator, log_in, register

AGENT = "Mozilla/5.0 (Windows NT 10.0; rv:132.0) Gecko/20100101 Firefox/132.0"
SUBJECT_LINE = "Gatehouse: new sign-in"
NEW = "another good password"


@pytest.fixture
def known(signed_in, mailbox):
    """`user`'s browser, which has signed in before."""
    mailbox.read()
    return signed_in


def subjects(mailbox):
    return [mail["Subject"] for mail in mailbox.read()]


# --- what is said --------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_it_says_when_what_from_where_and_how(rt, known, user, mailbox):
    configure(rt, public_site_url=["https://files.example"])
    stranger = known.stranger()
    stranger.login(user, address="203.0.113.9", headers={"User-Agent": AGENT}).ok()
    mail = mailbox.only()
    assert (mail["To"], mail["Subject"]) == (user.email, SUBJECT_LINE)
    text = text_of(mail)
    for said in (
        "Time: 2 March 2026, 09:30 UTC",
        "Browser: Firefox on Windows",
        "Address: 203.0.113.9",
        "Signed in with: password",
        "https://files.example/settings/security",
    ):
        assert said in text
    assert 'href="https://files.example/settings/security"' in html_of(mail)


def test_it_leads_to_the_site_while_the_account_has_no_pages(rt, known, user, mailbox):
    configure(rt, public_site_url=["https://files.example"], pages_sections=["sign_in"])
    known.stranger().login(user).ok()
    assert mailbox.link(mailbox.only()) == "https://files.example/"


def test_it_never_repeats_what_the_browser_says_of_itself(known, user, mailbox):
    agent = "Firefox/1 call-555-0100 <b>now</b> Windows"
    known.stranger().login(user, headers={"User-Agent": agent}).ok()
    mail = mailbox.only()
    assert "Firefox on Windows" in text_of(mail)
    assert "555-0100" not in text_of(mail) + html_of(mail)


def test_an_unknown_browser_is_called_so(known, user, mailbox):
    known.stranger().login(user, headers={"User-Agent": "x" * 600}).ok()
    assert "Browser: Unknown browser" in text_of(mailbox.only())


# --- every way to sign in ------------------------------------------------------------------------


def test_a_sign_in_with_both_steps_names_both_and_the_browser_of_the_second(
    rt, known, user, mailbox, clock
):
    enabled = give_totp(rt, user, clock)
    first, second = known.stranger(), known.stranger()
    token = start_login(first, user)
    assert mailbox.read() == []
    answer = verify(second, token, enabled.app.code(), headers={"User-Agent": AGENT})
    assert "service_device" in answer.set_cookies
    text = text_of(mailbox.only())
    assert "Signed in with: password and authenticator app" in text
    assert "Browser: Firefox on Windows" in text


def test_a_sign_in_with_a_passkey(rt, known, user, mailbox):
    configure(rt, public_site_url=["http://localhost"])
    device = Authenticator()
    register(known, device).ok()
    mailbox.read()
    log_in(known.stranger(), device).ok()
    assert "Signed in with: passkey" in text_of(mailbox.only())


def test_a_sign_in_with_another_service(rt, known, user, mailbox, corp):
    provider, fake = corp
    link(rt, user, provider, subject=SUBJECT)
    assert "service_device" in sign_in(known.stranger(), fake).set_cookies
    assert "Signed in with: another service" in text_of(mailbox.only())


def test_a_sign_in_that_links_another_service_by_the_password(rt, known, user, mailbox, corp):
    flow = wait_for_account(rt, corp[0])
    body = {"flow_token": flow, "identifier": user.username, "password": user.password}
    known.stranger().post("/auth/external-auth/password-link", body).ok()
    assert SUBJECT_LINE in subjects(mailbox)


# --- when nobody is mailed -----------------------------------------------------------------------


def test_a_known_browser_mails_nobody(known, user, mailbox):
    known.login(user).ok()
    assert mailbox.read() == []


def test_the_first_login_ever_mails_nobody(rt, api, user, mailbox):
    """Nor does an upgrade: accounts of before have no browsers."""
    api.login(user).ok()
    assert mailbox.read() == []
    assert count(rt, Browser) == 1


def test_the_login_after_a_registration_mails_nobody(rt, api, user, mailbox):
    body = {"username": "newcomer", "email": "newcomer@example.com", "password": NEW}
    api.post("/auth/register", body).ok(201)
    api.login("newcomer", NEW).ok()
    assert SUBJECT_LINE not in subjects(mailbox)


def test_the_first_login_after_a_reset_mails_nobody_and_the_next_does(rt, known, user, mailbox):
    known.post("/auth/password/reset/request", {"email": user.email}).ok()
    body = {"token": mailbox.token(mailbox.only()), "new_password": NEW}
    known.post("/auth/password/reset/confirm", body).ok()
    mailbox.read()
    known.stranger().login(user, NEW).ok()
    assert mailbox.read() == []
    known.login(user, NEW).ok()
    assert mailbox.read() == []
    known.stranger().login(user, NEW).ok()
    assert subjects(mailbox) == [SUBJECT_LINE]


def test_an_administrators_new_password_silences_nothing(rt, known, user, mailbox):
    boss = ApiClient(known.app)
    boss.login(make_user(rt, username="boss", role="admin")).ok()
    boss.put(f"/admin/users/{user.id}/password", {"password": NEW}).ok()
    mailbox.read()
    known.stranger().login(user, NEW).ok()
    assert subjects(mailbox) == [SUBJECT_LINE]


def test_an_account_without_a_verified_address_is_not_mailed(rt, known, user, mailbox):
    change_user(rt, user, email_verified_at=None)
    known.stranger().login(user).ok()
    assert mailbox.read() == []


def test_while_it_is_off_browsers_are_known_all_the_same(rt, known, user, mailbox):
    configure(rt, auth_new_browser_notice=False)
    other = known.stranger()
    other.login(user).ok()
    assert mailbox.read() == []
    configure(rt, auth_new_browser_notice=True)
    other.login(user).ok()
    assert mailbox.read() == []


def test_a_refused_login_and_one_that_waits_mail_nobody(rt, known, user, mailbox, clock):
    known.stranger().login(user, "not the password").fails(401, "auth.credentials_failed")
    give_totp(rt, user, clock)
    start_login(known.stranger(), user)
    assert mailbox.read() == []


def test_a_change_of_the_password_is_no_new_browser(known, user, mailbox):
    body = {"current_password": user.password, "new_password": NEW}
    answer = known.put("/auth/password", body)
    assert "service_device" not in answer.set_cookies
    assert SUBJECT_LINE not in subjects(mailbox)


# --- how many ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_ten_a_day_then_one_that_says_there_were_more(rt, known, user, mailbox, clock):
    for _ in range(13):
        clock.advance(minutes=1)
        known.stranger().login(user).ok()
    mails = mailbox.read()
    told = [mail["Subject"] for mail in mails]
    assert told == [SUBJECT_LINE] * 10 + ["Gatehouse: security notice"]
    assert "More than 10 new browsers have signed in" in text_of(mails[-1])
    clock.advance(hours=24)
    known.stranger().login(user).ok()
    assert subjects(mailbox) == [SUBJECT_LINE]


def test_they_are_counted_for_each_account(rt, known, user, mailbox):
    other = make_user(rt)
    for _ in range(11):
        known.stranger().login(user).ok()
    for _ in range(2):
        known.stranger().login(other).ok()
    assert [m["To"] for m in mailbox.read() if m["To"] == other.email] == [other.email]


def test_a_new_address_does_not_begin_the_count_anew(rt, known, user, mailbox):
    for _ in range(10):
        known.stranger().login(user).ok()
    change_user(rt, user, email="new@example.com")
    mailbox.read()
    known.stranger().login(user.username, user.password).ok()
    assert subjects(mailbox) == ["Gatehouse: security notice"]


# --- at one moment -------------------------------------------------------------------------------


def test_the_notice_is_queued_in_the_logins_transaction(rt, known, user, monkeypatch):
    """A login that fails tells nobody, and one that is told of has happened."""

    def fail(*_, **__):
        raise RuntimeError

    monkeypatch.setattr(service, "open_session", fail)
    known.stranger().login(user).fails(500, "internal_server_error")
    assert count(rt, OutboxMail) == 0
    assert count(rt, Browser) == 1


def test_it_costs_a_known_browser_one_statement_more(rt, known, user):
    statements = []

    def note(*arguments):
        statements.append(arguments[2])

    sa.event.listen(rt.database.engine, "before_cursor_execute", note)
    known.login(user).ok()
    sa.event.remove(rt.database.engine, "before_cursor_execute", note)
    assert [one.split()[0] for one in statements if "browsers" in one] == ["UPDATE"]


# --- what is left --------------------------------------------------------------------------------


def test_what_has_not_signed_in_for_long_is_deleted_but_each_accounts_last(
    rt, known, user, line, clock
):
    other = make_user(rt)
    known.stranger().login(user).ok()
    known.stranger().login(other).ok()
    clock.advance(days=1)
    known.login(user).ok()
    clock.advance(days=399, hours=1)
    assert line.json("cleanup")["browsers"] == 1
    clock.advance(days=400)
    assert line.json("cleanup")["browsers"] == 0
    assert count(rt, Browser) == 2


def test_an_account_that_is_deleted_leaves_none(rt, known, user):
    with rt.transaction() as session:
        session.execute(sa.delete(User).where(User.id == user.id))
    assert count(rt, Browser) == 0
