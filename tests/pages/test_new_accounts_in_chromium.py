"""Accounts made on the pages /register and /invite, in a real browser."""

import re

from playwright.sync_api import Page, expect

from app.core.access import COMMAND_LINE
from app.invitations import service as invitations
from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD, KnownUser
from tests.support.leaks import watch
from tests.support.pages import Site, answered, fill, is_signed_in, send, sign_in, sign_in_by_api

pytestmark = needs_chromium

BOB = KnownUser(2, "bob", "bob@example.com", PASSWORD)
BOBS = {"username": "bob", "email": "bob@example.com", "password": PASSWORD}
BOB_INVITED = {"username": "bob", "password": PASSWORD}


def register(page: Page, **others: str) -> None:
    """Fill in and send the form of the page, which is open."""
    fill(page, **BOBS | others)
    send(page)


def test_a_new_account_is_signed_in_and_led_where_it_was_to_go(page: Page, site: Site) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile%3Fa%3Db")
    page.get_by_role("link", name="Create an account").click()
    page.wait_for_url("**/register?return_path=*")
    register(page)
    page.wait_for_url("**/settings/profile?a=b")
    expect(page.locator("#me")).to_contain_text("bob")


def test_an_account_that_has_to_be_activated_is_so_by_its_mail(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.configure(auth_register_activation_enabled="true")
    page.goto("/register")
    register(page)
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()
    complaints.take_refusal(403)
    page.goto(site.mailed())
    page.wait_for_url("**/login?contact_verification=register-activated")
    expect(page.get_by_text("Your account is active.")).to_be_visible()
    sign_in(page, BOB)
    is_signed_in(page, BOB)


def test_an_address_that_was_mistyped_is_changed(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.configure(auth_register_activation_enabled="true")
    page.goto("/register")
    name, email = page.get_by_label("Username"), page.get_by_label("E-mail address")
    expect(name).to_be_focused()
    register(page, email="bbo@example.com")
    expect(page.get_by_text("bbo@example.com")).to_be_visible()
    complaints.take_refusal(403)
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("heading", name="Create an account")).to_be_visible()
    expect(email).to_be_focused()
    expect(email).to_have_value("bbo@example.com")
    expect(page.get_by_label("Password", exact=True)).to_have_value(PASSWORD)
    register(page)
    expect(name).to_have_accessible_description(re.compile("just created for bbo@example.com"))
    complaints.take_refusal(400)
    register(page, username="bobby")
    expect(page.get_by_text("bob@example.com")).to_be_visible()
    complaints.take_refusal(403)


def test_what_does_not_fit_is_said_at_its_field_without_asking_the_service(
    page: Page, site: Site
) -> None:
    page.goto("/register")
    register(page, username="b b", email="bob@example", password="seven77")
    name, password = page.get_by_label("Username"), page.get_by_label("Password", exact=True)
    expect(name).to_be_focused()
    expect(name).to_have_accessible_description(re.compile("^Use 2 to 64 characters"))
    expect(page.get_by_text("This is not a complete address")).to_be_visible()
    expect(
        page.get_by_text("The password is too short: 1 more character is needed.")
    ).to_be_visible()
    password.press("End")
    password.press("x")
    expect(password).not_to_have_attribute("aria-invalid", "true")
    fill(page, password="x" * 129)
    send(page)
    expect(page.get_by_text("The password is too long")).to_be_visible()


REFUSED = [
    ({"username": "ADA"}, "Username", "This name is taken."),
    ({"username": "Root"}, "Username", "This username cannot be chosen."),
    (
        {"email": "Ada@example.com"},
        "E-mail address",
        "There is already an account with this address.",
    ),
    ({"email": "bob@blocked.example"}, "E-mail address", "This address cannot be used here."),
    ({"password": "password1"}, "Password", "This password is too easy to guess"),
]


def test_what_the_service_refuses_is_said_at_its_field(
    page: Page, site: Site, complaints: Complaints
) -> None:
    blocked = ["blocked.example"]
    site.configure(auth_local_email_blocklist=blocked, auth_password_blocklist_enabled=True)
    page.goto("/register")
    for others, field, said in REFUSED:
        register(page, **others)
        node = page.get_by_label(field, exact=True)
        expect(node).to_have_accessible_description(re.compile(re.escape(said)))
        expect(node).to_be_focused()
        expect(page.get_by_label("Username")).to_have_value(others.get("username", "bob"))
    complaints.forgive()


def test_registration_that_was_closed_meanwhile_says_so(
    page: Page, site: Site, complaints: Complaints
) -> None:
    page.goto("/register")
    site.configure(auth_allow_user_registration=False)
    register(page)
    heading = page.get_by_role("heading", name="Registration is closed")
    expect(heading).to_be_focused()
    complaints.take_refusal(403)
    page.reload()
    expect(heading).to_be_visible()
    page.get_by_role("link", name="Go to sign-in").click()
    page.wait_for_url("**/login")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Create an account")).to_have_count(0)


def test_who_is_signed_in_is_told_that_the_new_account_takes_the_place(
    page: Page, site: Site
) -> None:
    sign_in_by_api(page, site.ada)
    page.goto("/register")
    expect(page.get_by_text("You are signed in as ada.")).to_be_visible()
    register(page)
    is_signed_in(page, BOB)


def invite(site: Site, email: str = BOB.email) -> str:
    """Invite an address; return the path of the link."""
    created = invitations.create(site.rt, COMMAND_LINE, email=email)
    watch.note(created.token)
    return f"/invite/{created.token}"


def test_an_invitation_leads_to_an_account_and_leaves_no_token_behind(
    page: Page, site: Site
) -> None:
    path = invite(site)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(str(request.headers.get("referer", ""))))
    page.goto(path)
    expect(page.get_by_label("E-mail address")).to_have_value(BOB.email)
    assert page.evaluate("location.pathname") == "/invite/open"
    page.get_by_label("Language").select_option("de")
    expect(page.get_by_role("heading", name="Sie sind zu Gatehouse eingeladen")).to_be_visible()
    expect(page.get_by_label("E-Mail-Adresse")).to_have_value(BOB.email)
    fill(page, **BOB_INVITED)
    send(page)
    page.wait_for_url("**/settings/profile")
    expect(page.locator("#me")).to_contain_text("bob")
    expect(page.get_by_role("link", name="Sicherheit")).to_be_visible()
    me = page.evaluate("fetch('/api/v1/auth/me').then((answer) => answer.json())")
    assert me["data"]["preferences"]["language"] == "de"
    assert not any("invite" in referer for referer in sent)
    assert page.evaluate("JSON.stringify([sessionStorage, localStorage])").find(path[8:]) == -1
    page.go_back()
    expect(page.get_by_role("heading", name="Diese Einladung ist ungültig")).to_be_visible()


def test_an_invitation_that_is_over_says_why(
    page: Page, site: Site, complaints: Complaints
) -> None:
    first = invite(site)
    path = invite(site)  # replaces the first
    for over, said in ((first, "has been withdrawn"), ("/invite/wrong", "is not valid")):
        page.goto(over)
        expect(page.get_by_role("heading", name=f"This invitation {said}")).to_be_visible()
        expect(page.get_by_text("Ask whoever invited you for a new one.")).to_be_visible()
        complaints.take_refusal(400)
    page.goto(path)
    expect(page.get_by_label("Username")).to_be_visible()
    site.post(f"/auth/invitations/{path[8:]}/accept", BOB_INVITED)
    fill(page, username="robert", password=PASSWORD)
    send(page)
    expect(
        page.get_by_role("heading", name="This invitation has already been used")
    ).to_be_focused()
    complaints.take_refusal(400)
    page.get_by_role("link", name="Go to sign-in").click()
    page.wait_for_url("**/login")


def test_without_passwords_an_invitation_says_that_it_has_to_wait(page: Page, site: Site) -> None:
    path = invite(site)
    site.configure(auth_password_login_enabled=False)
    site.follows("data-no-passwords")
    page.goto(path)
    expect(page.get_by_text("Invitations cannot be accepted while")).to_be_visible()
    assert page.locator("form").count() == 0


def test_what_a_link_or_an_answer_says_is_text(page: Page, site: Site) -> None:
    mark = "<img src=x onerror=alert(1)>"
    answered(
        page,
        "**/auth/invitations/*",
        200,
        "success",
        {"email": mark, "expires_at": "2026-12-02T10:00:00Z"},
    )
    answered(page, "**/auth/me", 200, "success", {"username": mark, "role": "user"})
    page.goto("/login")
    page.evaluate("document.cookie = 'service_csrf=x'")
    page.goto("/invite/a%3Cb%3E")
    expect(page.get_by_label("E-mail address")).to_have_value(mark)
    expect(page.get_by_text(f"You are signed in as {mark}.")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
