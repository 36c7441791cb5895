"""POST /auth/external-auth/{kind}/{provider}/start with the intent to link or to confirm."""

import pytest

from app.sessions.models import LoginSession
from tests.support.api import ApiClient
from tests.support.authenticator import enable_totp
from tests.support.external import (
    add_provider,
    change_provider,
    come_back,
    cookie_name,
    fails,
    link,
    links,
    start,
    told,
)
from tests.support.factories import audit_rows, change_user, configure, count, make_user
from tests.support.fake_provider import REMOVED, SUBJECT
from tests.support.mailbox import text_of
from tests.support.races import run_concurrently

PATH = "/auth/external-auth/oidc/corp/start"
CONFIRMATION = "/auth/confirmation"
PAGE = "/settings?tab=links#top"
SESSION_COOKIES = {"service_access", "service_refresh", "service_csrf"}
MISMATCH = "auth.session_user_mismatch"
REFUSED = 400, "bad_request"


def went(client, fake, intent="link", **body):
    """Go through it all; return the callback's answer."""
    begun = start(client, intent=intent, **({"return_path": PAGE} | body))
    return come_back(client, fake.sign_in(begun.url))


def ends(answer, word, code=None):
    """Assert that the browser went to its page, told only this, and got no session."""
    code = f"&code={code}" if code else ""
    expected = f"http://localhost/settings?tab=links&external_auth={word}{code}#top"
    assert (answer.status, answer.headers["Location"]) == (302, expected)
    assert not SESSION_COOKIES & answer.set_cookies.keys()


def move(started, client):
    """Give a browser the cookie of a flow that was begun in another one."""
    path = "/api/v1/auth/external-auth"
    client._client.set_cookie(cookie_name(started.state), started.cookie, path=path)


@pytest.fixture
def victim(app, rt, corp):
    """Somebody else's browser, signed in."""
    owner, browser = make_user(rt), ApiClient(app)
    browser.login(owner).ok()
    return browser


# --- link ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_linking_opens_no_session_and_is_told_to_the_owner(
    rt, signed_in, user, fake, corp, mailbox
):
    ends(went(signed_in, fake), "linked")
    [row] = links(rt)
    assert (row.user_id, row.subject, row.email_snapshot) == (user.id, SUBJECT, "jane@example.com")
    assert count(rt, LoginSession) == 1
    mail = mailbox.only()
    assert mail["To"] == user.email
    assert "A sign-in with Corporate was added." in text_of(mail)
    [entry] = audit_rows(rt, "user_external_auth_link")
    assert entry.user_id == user.id
    stranger = signed_in.stranger()
    come_back(stranger, fake.sign_in(start(stranger).url))
    assert stranger.me().ok()["id"] == user.id


def test_linking_the_same_identity_again_changes_nothing(rt, signed_in, fake, corp, mailbox):
    for _ in range(2):
        ends(went(signed_in, fake), "linked")
    assert len(links(rt)) == len(mailbox.read()) == 1


def test_an_identity_of_somebody_else_is_not_linked(rt, signed_in, fake, corp):
    other = make_user(rt)
    link(rt, other, corp, subject=SUBJECT)
    ends(went(signed_in, fake), "error", "conflict")
    assert [row.user_id for row in links(rt)] == [other.id]


def test_a_second_identity_of_a_provider_is_not_linked(rt, signed_in, user, fake, corp):
    link(rt, user, corp, subject="the first")
    ends(went(signed_in, fake), "error", "conflict")
    assert [row.subject for row in links(rt)] == ["the first"]


@pytest.mark.both_databases
def test_two_accounts_cannot_link_one_identity_at_the_same_moment(rt, signed_in, victim, fake):
    urls = [(browser, start(browser, intent="link").url) for browser in (signed_in, victim)]
    brought = [(browser, fake.sign_in(url)) for browser, url in urls]
    answers = run_concurrently([lambda b=b, p=p: come_back(b, p) for b, p in brought])
    words = sorted(told(answer, "/")["external_auth"] for answer in answers)
    assert words == ["error", "linked"]
    assert len(links(rt)) == 1


def test_the_providers_rules_apply(rt, signed_in, fake, corp):
    change_provider(rt, corp, allowed_domains=["example.org"])
    ends(went(signed_in, fake), "error", "external_auth.policy_denied")
    change_provider(rt, corp, allowed_domains=None, require_email_verified=True)
    fake.claims = {"email_verified": False}
    ends(went(signed_in, fake), "error", "external_auth.policy_denied")
    assert links(rt) == []


def test_nothing_is_linked_to_an_account_whose_address_is_unverified(
    rt, signed_in, user, fake, corp
):
    change_user(rt, user, email_verified_at=None)
    ends(went(signed_in, fake), "error", "auth.pending_activation")
    assert links(rt) == []


def test_whoever_changed_their_mind_goes_back_to_their_page(signed_in, fake, corp):
    state = start(signed_in, intent="link", return_path=PAGE).state
    back = {"error": "access_denied", "state": state}
    ends(come_back(signed_in, back), "error", "auth.credentials_failed")


def test_a_recent_sign_in_is_asked_for_as_for_removing_a_link(rt, signed_in, corp, clock):
    configure(rt, auth_confirmation_max_age_secs=60)
    clock.advance(minutes=2)
    signed_in.post(PATH, {"intent": "link"}).fails(412, "precondition_failed")
    signed_in.post(PATH, {"intent": "confirm"}).ok()


# --- whose session it is ---------------------------------------------------------------------


@pytest.mark.parametrize("intent", ["link", "confirm"])
def test_both_need_a_session(rt, api, browser, user, corp, intent):
    api.post(PATH, {"intent": intent}).fails(401, "auth.token_missing")
    api.bearer("not.a.token").post(PATH, {"intent": intent}).fails(401, "auth.token_invalid")
    browser.login(user).ok()
    browser.post(PATH, {"intent": intent}).ok()
    bare = {"X-CSRF-Token": None}
    browser.post(PATH, {"intent": intent}, headers=bare).fails(403, "auth.csrf_header_missing")
    change_user(rt, user, must_change_password=True)
    browser.login(user).ok()
    browser.post(PATH, {"intent": intent}).fails(403, "auth.password_change_required")
    browser.post(PATH, {"intent": "wish"}).fails(*REFUSED)


@pytest.mark.parametrize("intent", ["link", "confirm"])
def test_a_flow_finished_in_the_victims_browser_does_nothing(
    rt, signed_in, user, victim, fake, corp, clock, intent
):
    """Neither without the cookie of the flow, nor with it: say that a subdomain planted it."""
    link(rt, user, corp, subject="mine")
    fake.claims = {"auth_time": int(clock.now().timestamp())}
    before = audit_rows(rt)
    for is_planted in (False, True):
        begun = start(signed_in, intent=intent, return_path=PAGE)
        back = fake.sign_in(begun.url)
        if is_planted:
            move(begun, victim)
        answer = come_back(victim, back)
        fails(answer, MISMATCH if is_planted else "auth.credentials_failed")
    assert [row.subject for row in links(rt)] == ["mine"]
    assert audit_rows(rt) == before


def test_another_session_of_the_same_account_links_nothing(rt, signed_in, user, fake, corp):
    again = signed_in.stranger()
    again.login(user).ok()
    begun = start(signed_in, intent="link")
    move(begun, again)
    fails(come_back(again, fake.sign_in(begun.url)), MISMATCH)
    assert links(rt) == []


def test_a_session_that_ended_links_nothing(rt, signed_in, fake, corp):
    begun = start(signed_in, intent="link")
    signed_in.post("/auth/logout").ok()
    fails(come_back(signed_in, fake.sign_in(begun.url)), MISMATCH)
    assert links(rt) == []


def test_an_ordinary_sign_in_still_asks_nobody_who_is_signed_in(signed_in, user, fake, corp, rt):
    link(rt, user, corp, subject=SUBJECT)
    answer = went(signed_in, fake, "sign_in")
    assert answer.headers["Location"] == f"http://localhost{PAGE}"
    assert answer.set_cookies.keys() >= SESSION_COOKIES


# --- confirm ---------------------------------------------------------------------------------


@pytest.fixture
def later(rt, signed_in, user, corp, clock):
    """Linked, and signed in long ago."""
    link(rt, user, corp, subject=SUBJECT)
    clock.advance(minutes=16)
    signed_in.refresh().ok()
    return signed_in


def is_fresh(client):
    return client.get(CONFIRMATION).ok()["is_fresh"]


def seconds_ago(clock, seconds):
    return {"auth_time": int(clock.now().timestamp()) - seconds}


def test_signing_in_anew_confirms_this_session_and_opens_none(rt, later, user, fake, clock):
    begun = start(later, intent="confirm", return_path=PAGE)
    assert (begun.query["prompt"], begun.query["max_age"]) == ("login", "0")
    fake.claims = seconds_ago(clock, 300)
    ends(come_back(later, fake.sign_in(begun.url)), "confirmed")
    assert is_fresh(later)
    assert count(rt, LoginSession) == 1
    [entry] = audit_rows(rt, "user_confirm_identity")
    assert (entry.user_id, entry.details) == (user.id, '{"method": "external"}')


def test_a_provider_is_asked_for_no_more_than_usual_otherwise(signed_in, corp):
    for intent in ("sign_in", "link"):
        assert not {"prompt", "max_age"} & start(signed_in, intent=intent).query.keys()


@pytest.mark.parametrize("said", [301, REMOVED, "yesterday"])
def test_an_old_sign_in_at_the_provider_confirms_nothing(later, fake, clock, said):
    fake.claims = seconds_ago(clock, said) if isinstance(said, int) else {"auth_time": said}
    ends(went(later, fake, "confirm"), "error", "auth.credentials_failed")
    assert not is_fresh(later)


@pytest.mark.parametrize("subject", ["somebody else", "nobody"])
def test_an_identity_of_another_account_confirms_nothing(rt, later, fake, corp, clock, subject):
    link(rt, make_user(rt), corp, subject="somebody else")
    change_provider(rt, corp, auto_provision_enabled=True)
    fake.claims = {"sub": subject, "email": "new@example.com", **seconds_ago(clock, 1)}
    fake.reply("/userinfo", status=404)
    ends(went(later, fake, "confirm"), "error", MISMATCH)
    assert not is_fresh(later)
    assert len(links(rt)) == 2


def test_with_an_authenticator_app_the_provider_is_not_enough(signed_in, clock, corp):
    enable_totp(signed_in, clock)
    signed_in.post(PATH, {"intent": "confirm"}).fails(*REFUSED)
    signed_in.post(PATH, {"intent": "link"}).ok()


def test_where_a_sign_in_asks_for_a_mailed_code_the_provider_is_not_enough(rt, signed_in, corp):
    configure(rt, mail_smtp_host="mail.example", mail_from_address="a@mail.example")
    configure(rt, auth_email_code_login_enabled=True)
    signed_in.post(PATH, {"intent": "confirm"}).fails(*REFUSED)
    signed_in.post(PATH, {"intent": "link"}).ok()


def test_an_app_that_was_set_up_meanwhile_is_asked_for(rt, later, fake, clock):
    fake.claims = seconds_ago(clock, 1)
    begun = start(later, intent="confirm", return_path=PAGE)
    enable_totp(later, clock)
    ends(come_back(later, fake.sign_in(begun.url)), "error", "bad_request")
    assert not is_fresh(later)


@pytest.mark.parametrize("kind", ["github", "generic_oauth2", "google"])
def test_a_kind_that_tells_no_time_cannot_confirm(rt, signed_in, kind):
    add_provider(rt, kind=kind)
    path = PATH.replace("oidc", kind)
    signed_in.post(path, {"intent": "confirm"}).fails(*REFUSED)


def test_it_is_offered_to_whoever_has_nothing_else(rt, later, user, corp):
    assert later.get(CONFIRMATION).ok()["methods"] == ["password"]
    change_user(rt, user, password_hash=None)
    assert later.get(CONFIRMATION).ok()["methods"] == ["external"]
    later.post(CONFIRMATION, {"method": "external"}).fails(*REFUSED)
    change_provider(rt, corp, enabled=False)
    assert later.get(CONFIRMATION).ok()["methods"] == []
