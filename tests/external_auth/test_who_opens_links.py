"""What a mailed link does for whoever opens it: the browser that asked, a scanner, a person.

A stranger may have asked for it with an address that is not theirs, and scanners open every link.
"""

import re
from html import unescape

import pytest
import sqlalchemy as sa

from app.contact_verification.service import is_same_browser
from app.external_auth.models import Provider
from app.users.models import User
from tests.support.api import BASE
from tests.support.challenge import give_totp
from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    link,
    links,
    sign_in,
    signs_in,
    told,
    wait_for_account,
)
from tests.support.factories import (
    KnownUser,
    change_user,
    column_of,
    configure,
    count,
    make_user,
)

ASK = "/auth/external-auth/email-verification/start"
OPEN = "/auth/external-auth/email-verification/confirm"
ACTIVATE = "/auth/contact-verification/confirm"
PASSWORD, NEW = "correct horse battery", "a quite different one"
JANE = "jane@example.com"


pytestmark = pytest.mark.usefixtures("user")


def register(client, username="jane", email=JANE):
    """Register; return the cookie by which the browser is known again."""
    body = {"username": username, "email": email, "password": PASSWORD}
    answer = client.post("/auth/register", body)
    answer.ok(201)
    return answer.set_cookies["service_browser"]


def who_is(client):
    """Return whose session a browser has."""
    me = client.me().ok()
    return KnownUser(me["id"], me["username"], me["email"], PASSWORD)


def forget_password(client, mailbox, email=JANE):
    """Set a new password by mail."""
    mailbox.read()
    client.post("/auth/password/reset/request", {"email": email}).ok()
    body = {"token": mailbox.token(mailbox.only()), "new_password": NEW}
    client.post("/auth/password/reset/confirm", body).ok()


@pytest.fixture
def owner(rt):
    return make_user(rt, username="jane", email=JANE)


@pytest.fixture
def asked(api, rt, mailbox):
    """Have a browser ask for the mail of an identity that waits; return both tokens."""

    def ask(email=JANE, **profile):
        provider = add_provider(rt, display_name="Corp <SSO>", auto_provision_enabled=True)
        flow = wait_for_account(rt, provider, **profile)
        api.post(ASK, {"flow_token": flow, "email": email}).ok()
        return mailbox.token(mailbox.only()), flow

    return ask


@pytest.mark.parametrize(
    ("browser", "asking", "is_same"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("", "a", False),
        (None, "a", False),
        ("a", None, False),
        (None, None, False),
    ],
)
def test_which_browser_it_is(browser, asking, is_same):
    assert is_same_browser(browser, asking) is is_same


# --- activation and change of address -----------------------------------------------------------


@pytest.mark.parametrize(("opener", "is_proven"), [("same", True), ("other", False)])
def test_a_registration_is_proven_by_the_browser_that_asked(
    rt, api, mailbox, clock, opener, is_proven
):
    configure(rt, auth_register_activation_enabled="true")
    register(api)
    path = f"{ACTIVATE}?token={mailbox.token(mailbox.only())}"
    browser = api if opener == "same" else api.stranger()
    api.stranger().call("HEAD", path)
    assert "register-activated" in browser.get(path).headers["Location"]
    api.login("jane", PASSWORD).ok()
    user = who_is(api)
    assert column_of(rt, user, "email_verified_at") == clock.now()
    assert column_of(rt, user, "proven_at") == (clock.now() if is_proven else None)


@pytest.mark.parametrize(
    ("again", "opener", "is_proven"),
    [("same", "same", True), ("other", "same", True), ("other", "other", False)],
)
def test_a_mail_that_is_sent_again_is_still_that_of_who_chose_the_password(
    rt, api, mailbox, clock, again, opener, is_proven
):
    """Be it that a stranger asks, or that an owner asks after a stranger's registration."""
    configure(rt, auth_register_activation_enabled="true")
    browsers = {"same": api, "other": api.stranger()}
    register(api)
    mailbox.read()
    clock.advance(minutes=1)
    browsers[again].post("/auth/register/resend", {"identifier": "jane"}).ok()
    browsers[opener].get(f"{ACTIVATE}?token={mailbox.token(mailbox.only())}")
    api.login("jane", PASSWORD).ok()
    assert (column_of(rt, who_is(api), "proven_at") is not None) is is_proven


@pytest.mark.parametrize(("opener", "is_proven"), [("same", True), ("other", False)])
def test_so_is_a_change_of_address(rt, signed_in, user, mailbox, clock, opener, is_proven):
    signed_in.post("/auth/email/change", {"new_email": JANE}).ok()
    token = mailbox.token(mailbox.only())
    browser = signed_in if opener == "same" else signed_in.stranger()
    assert "email-changed" in browser.get(f"{ACTIVATE}?token={token}").headers["Location"]
    assert column_of(rt, user, "email") == JANE
    assert column_of(rt, user, "proven_at") == (clock.now() if is_proven else None)


def test_the_browsers_cookie(api, mailbox, rt):
    configure(rt, auth_register_activation_enabled="true")
    cookie = register(api)
    assert register(api, "bob", "bob@example.com").value == cookie.value
    assert register(api.stranger(), "eve", "eve@example.com").value != cookie.value
    assert cookie.attributes["path"] == f"{BASE}/auth"
    assert cookie.attributes["max-age"] == "86400"
    assert cookie.attributes["httponly"] is True
    assert cookie.attributes["samesite"] == "Lax"


# --- an identity that a stranger wants to be joined ---------------------------------------------


@pytest.mark.parametrize("has_account", [True, False])
def test_a_scanner_that_opens_the_link_joins_nothing(rt, api, asked, request, has_account):
    if has_account:
        request.getfixturevalue("owner")
    token, _ = asked()
    users = count(rt, User)
    for method in ("HEAD", "GET", "GET"):
        answer = api.stranger().call(method, f"{OPEN}?token={token}")
        assert answer.set_cookies == {}
        assert answer.status == (302 if method == "HEAD" else 200)
    assert (links(rt), count(rt, User)) == ([], users)


def test_the_page_says_who_wants_to_be_joined_to_what(api, owner, asked):
    token, _ = asked(display_name="<b>Eve</b>")
    answer = api.stranger().get(f"{OPEN}?token={token}")
    words = re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", answer.text)))
    for said in ("Is this you?", "Corp <SSO>", "<b>Eve</b>", f"jane ({JANE})", "Gatehouse"):
        assert said in words
    assert "<b>Eve" not in answer.text
    assert "<script" not in answer.text
    policy = answer.headers["Content-Security-Policy"]
    assert "form-action 'self' http://localhost;" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    german = api.stranger().get(f"{OPEN}?token={token}", headers={"Accept-Language": "de"})
    assert "Sind Sie das?" in german.text


def test_the_person_presses_a_button_wherever_the_mail_is_read(rt, api, owner, asked, clock):
    change_user(rt, owner, proven_at=clock.now())
    token, _ = asked()
    phone = api.stranger()
    phone.get(f"{OPEN}?token={token}")
    answer = phone.post(f"{OPEN}?token={token}&answer=yes")
    assert (answer.status, answer.headers["Location"]) == (303, "http://localhost/files")
    assert phone.me().ok()["id"] == owner.id
    answer = api.post(f"{OPEN}?token={token}")
    assert answer.headers["Location"].endswith("/login?external_auth=email_verification_invalid")


def test_the_button_makes_an_account_that_is_proven(rt, api, asked, clock):
    token, _ = asked()
    phone = api.stranger()
    assert phone.post(f"{OPEN}?token={token}").status == 303
    assert column_of(rt, who_is(phone), "proven_at") == clock.now()


@pytest.mark.parametrize("added", ["&answer=yes", "&answer=no", "&x=1"])
def test_what_is_added_to_a_link_answers_for_nobody(api, owner, asked, added):
    token, _ = asked()
    page = api.stranger().get(f"{OPEN}?token={token}{added}").text
    actions = {f"?token={token}&answer=yes", f"?token={token}&answer=no"}
    assert set(map(unescape, re.findall('action="([^"]+)"', page))) == actions


def test_an_identity_that_was_linked_meanwhile_signs_nobody_else_in(rt, api, owner, asked):
    """Its page named the account of the address."""
    token, _ = asked()
    with rt.reading() as session:
        provider = session.scalars(sa.select(Provider)).one()
    link(rt, make_user(rt), provider, subject="new")
    answer = api.stranger().post(f"{OPEN}?token={token}")
    assert answer.headers["Location"].endswith("email_verification_invalid")
    assert answer.set_cookies == {}


def test_no_ends_link_and_flow(rt, api, owner, asked):
    token, flow = asked()
    answer = api.stranger().post(f"{OPEN}?token={token}&answer=no")
    assert answer.headers["Location"].endswith("/login?external_auth=email_verification_declined")
    assert told(api.get(f"{OPEN}?token={token}"))["external_auth"] == "email_verification_invalid"
    body = {"flow_token": flow, "identifier": owner.username, "password": owner.password}
    api.post("/auth/external-auth/password-link", body).fails(
        400, "auth.contact_verification_invalid"
    )
    again = api.stranger().post(f"{OPEN}?token={token}&answer=no")
    assert again.headers["Location"].endswith("email_verification_invalid")
    assert links(rt) == []


REFUSED = {
    "another site": ({"Origin": "https://evil.example"}, 403, "auth.request_origin_untrusted"),
    "a page that hides": ({"Origin": "null"}, 400, "validation.request_origin_invalid"),
    "no person": ({"Sec-Fetch-Site": "cross-site"}, 403, "auth.request_source_untrusted"),
}


@pytest.mark.parametrize("by", REFUSED)
def test_a_press_that_another_site_causes_uses_nothing_up(rt, api, owner, asked, by):
    headers, status, code = REFUSED[by]
    token, _ = asked()
    for answer in ("yes", "no"):
        path = f"{OPEN}?token={token}&answer={answer}"
        api.stranger().post(path, headers=headers).fails(status, code)
    assert api.stranger().post(f"{OPEN}?token={token}&answer=maybe").status == 400
    assert links(rt) == []
    signs_in(api.get(f"{OPEN}?token={token}"), "/files")


@pytest.mark.parametrize("how", ["same browser", "button"])
def test_an_account_that_nobody_has_proven_is_not_joined(rt, api, owner, asked, how):
    """It was when the mail was sent."""
    token, _ = asked()
    change_user(rt, owner, proven_at=None)
    answer = (
        api.get(f"{OPEN}?token={token}")
        if how == "same browser"
        else api.stranger().post(f"{OPEN}?token={token}")
    )
    assert answer.headers["Location"].endswith("code=auth.pending_activation")
    assert links(rt) == []


@pytest.mark.parametrize("typed", ["", "%20", "cv_unknown", "x" * 5000])
def test_an_answer_about_no_link(api, typed):
    for answer in ("yes", "no"):
        told_so = api.post(f"{OPEN}?token={typed}&answer={answer}").headers["Location"]
        assert re.search("email_verification_(missing|invalid)$", told_so)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_provider_that_makes_no_accounts_makes_none_by_mail(rt, api, admin, is_open):
    provider = add_provider(rt, auto_provision_enabled=is_open)
    flow = wait_for_account(rt, provider)
    answer = api.post(ASK, {"flow_token": flow, "email": "new@example.com"})
    assert answer.code == ("success" if is_open else "auth.registration_disabled")


# --- who registers with somebody else's address -------------------------------------------------


def test_who_comes_by_a_provider_is_not_put_into_a_strangers_account(rt, api, fake, corp, mailbox):
    configure(rt, auth_register_activation_enabled="true")
    change_provider(rt, corp, auto_link_verified_email_enabled=True)
    stranger = api.stranger()
    register(stranger)
    activation = mailbox.token(mailbox.only())
    api.stranger().get(f"{ACTIVATE}?token={activation}")  # a scanner
    stranger.login("jane", PASSWORD).ok()
    flow = asks_for_address(sign_in(api, fake))
    refused = api.post(ASK, {"flow_token": flow, "email": JANE})
    refused.fails(403, "auth.pending_activation")
    assert "forgot password" in refused.json["msg"]
    forget_password(api, mailbox)
    stranger.me().fails(401, "auth.token_invalid")
    signs_in(sign_in(api, fake))
    assert api.me().ok()["username"] == "jane"


def test_a_reset_removes_what_a_stranger_planted(rt, api, mailbox, clock):
    configure(rt, auth_register_activation_enabled="false")
    stranger = api.stranger()
    register(stranger)
    stranger.login("jane", PASSWORD).ok()
    planted = who_is(stranger)
    give_totp(rt, planted, clock)
    link(rt, planted, add_provider(rt, key="other"))
    stranger.post("/auth/email/change", {"new_email": "stranger@example.com"}).ok()
    change = mailbox.token(mailbox.only())
    forget_password(api, mailbox)
    assert api.login("jane", NEW).ok()["status"] == "authenticated"
    me = api.me().ok()
    assert (me["id"], me["pending_email"], links(rt)) == (planted.id, None, [])
    assert "invalid" in stranger.get(f"{ACTIVATE}?token={change}").headers["Location"]
    assert column_of(rt, planted, "proven_at") == clock.now()


@pytest.mark.parametrize(
    ("vouches", "trusted", "proves"),
    [
        (True, {"auto_link_verified_email_enabled": True}, True),
        (True, {"auto_provision_enabled": True}, True),
        (False, {"auto_link_verified_email_enabled": True}, False),
        (True, {}, False),
        (
            True,
            {"auto_link_verified_email_enabled": True, "allowed_domains": ["other.example"]},
            False,
        ),
    ],
    ids=str,
)
def test_a_provider_that_is_trusted_with_the_address_proves_it(
    rt, api, fake, corp, owner, vouches, trusted, proves
):
    change_user(rt, owner, proven_at=None, email_verified_at=None)
    link(rt, owner, corp, subject="jane-1")
    fake.claims |= {"sub": "jane-1", "email": JANE, "email_verified": vouches}
    change_provider(rt, corp, require_email_verified=False, **trusted)
    signs_in(sign_in(api, fake))
    assert (column_of(rt, owner, "proven_at") is not None) is proves


# --- who waits for activation -------------------------------------------------------------------


def test_the_owner_of_the_mailbox_gets_in_by_a_reset(rt, api, mailbox, clock):
    configure(rt, auth_register_activation_enabled="true")
    register(api.stranger())
    forget_password(api, mailbox)
    api.login("jane", PASSWORD).fails(401, "auth.credentials_failed")
    api.login("jane", NEW).ok()
    for column in ("activated_at", "email_verified_at", "proven_at"):
        assert column_of(rt, who_is(api), column) == clock.now()


@pytest.mark.both_databases
@pytest.mark.parametrize("kept", ["username", "email", "both"])
def test_an_abandoned_account_keeps_name_and_address_from_nobody(rt, api, clock, kept):
    configure(rt, auth_register_activation_enabled="true")
    names = {"username": {"email": "other@example.com"}, "email": {"username": "other"}, "both": {}}
    again = {"username": "Jane", "email": JANE, "password": NEW} | names[kept]
    register(api)
    users = count(rt, User)
    clock.advance(days=7)
    api.post("/auth/register", again).fails(
        400, "auth.email_exists" if kept == "email" else "auth.username_exists"
    )
    clock.advance(seconds=1)
    api.post("/auth/register", again).ok(201)
    assert count(rt, User) == users


def test_who_is_active_or_disabled_or_waits_for_less_keeps_them(rt, api, clock, line):
    configure(rt, auth_register_activation_enabled="true", auth_unactivated_keep_days=2)
    kept = [make_user(rt), make_user(rt, activated=False, status="disabled")]
    member, mailed = make_user(rt, activated=False), make_user(rt, activated=False)
    line.json("teams", "create", "Crew", "--owner", member.username)
    abandoned = make_user(rt, activated=False)
    clock.advance(days=2, seconds=1)
    api.post("/auth/password/reset/request", {"email": mailed.email}).ok()
    kept += [member, mailed, make_user(rt, activated=False)]
    taken = {"username": mailed.username, "email": "new@example.com", "password": NEW}
    for user in kept:
        body = {"username": user.username, "email": "new@example.com", "password": NEW}
        api.post("/auth/register", body).fails(400, "auth.username_exists")
    assert line.json("cleanup")["unactivated_accounts"] == 1
    assert column_of(rt, abandoned, "id") is None
    assert all(column_of(rt, user, "id") == user.id for user in kept)
    # A link that anybody may ask for does not keep it for ever.
    for _ in range(2):
        clock.advance(hours=23)
        api.post("/auth/register/resend", {"identifier": mailed.username}).ok()
    api.post("/auth/register", taken).ok(201)


def test_a_link_that_lives_longer_keeps_the_account(rt, api, clock, line, mailbox):
    configure(
        rt, auth_register_activation_enabled="true", auth_register_activation_ttl_secs=2_592_000
    )
    register(api)
    clock.advance(days=29)
    assert line.json("cleanup")["unactivated_accounts"] == 0
    api.get(f"{ACTIVATE}?token={mailbox.token(mailbox.only())}")
    api.login("jane", PASSWORD).ok()
