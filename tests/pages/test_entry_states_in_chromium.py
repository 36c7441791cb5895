"""The forms beside the sign-in: accessible, and calm while service or network are not there."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support import npm
from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD
from tests.support.pages import Site, answered, barriers_of, fill, send

pytestmark = needs_chromium

STATE = {"allow_user_registration": True, "password_login_enabled": True}
INVITATION = {"email": "bob@example.com", "expires_at": "2026-12-02T10:00:00Z"}
ME = {"username": "ada", "role": "admin", "must_change_password": False}
ACCOUNT = {"username": "bob", "email": "bob@example.com", "password": PASSWORD}
NEW_PASSWORD = {"new_password": "another good password"}

Open = Callable[[Page], None]


def signed_in(page: Page, **others: Any) -> None:
    """Let the pages believe that somebody is signed in."""
    page.goto("/login")
    page.evaluate("document.cookie = 'service_csrf=x'")
    answered(page, "**/auth/me", 200, "success", ME | others)


def open_setup(page: Page) -> None:
    answered(page, "**/auth/check", 200, "success", {**STATE, "setup_state": "needs_admin"})
    page.goto("/setup")


def open_register(page: Page) -> None:
    page.goto("/register")


def open_reset(page: Page) -> None:
    page.goto("/reset-password")


def open_new_password(page: Page) -> None:
    page.goto("/reset-password?token=abc")
    expect(page.get_by_role("heading", name="Choose a new password")).to_be_visible()


def open_invite(page: Page) -> None:
    answered(page, "**/auth/invitations/*", 200, "success", INVITATION)
    page.goto("/invite/abc")
    expect(page.get_by_label("E-mail address")).to_have_value(INVITATION["email"])


def open_force(page: Page) -> None:
    signed_in(page, must_change_password=True)
    page.goto("/force-password-change")
    expect(page.get_by_text("Not ada?")).to_be_visible()


# How each form is opened and filled in, the call it makes, and what is said when nobody knows
# whether that did something.
FORMS: dict[str, tuple[Open, dict[str, str], str, str]] = {
    "setup": (open_setup, ACCOUNT, "**/auth/setup", "whether the account was created"),
    "register": (open_register, ACCOUNT, "**/auth/register", "whether the account was created"),
    "reset": (open_reset, {"email": "a@b.example"}, "**/reset/request", "The service is busy"),
    "new password": (
        open_new_password,
        NEW_PASSWORD,
        "**/reset/confirm",
        "whether the password was changed",
    ),
    "invite": (
        open_invite,
        {"username": "bob", "password": PASSWORD},
        "**/invitations/*/accept",
        "whether the account was created",
    ),
    "force": (
        open_force,
        {"current_password": PASSWORD, **NEW_PASSWORD},
        "**/auth/password",
        "whether the password was changed",
    ),
}


def sent(page: Page, name: str) -> None:
    """Open a form, fill it in and send it."""
    opens, values, _, _ = FORMS[name]
    opens(page)
    fill(page, **values)
    send(page)


def expect_values(page: Page, name: str) -> None:
    """Expect a form to be as it was filled in."""
    for field, value in FORMS[name][1].items():
        expect(page.locator(f"[name={field}]:visible")).to_have_value(value)


@pytest.mark.parametrize("name", FORMS)
def test_a_limit_counts_down_and_nothing_typed_is_lost(
    page: Page, site: Site, complaints: Complaints, name: str
) -> None:
    answered(page, FORMS[name][2], 429, "rate_limited", **{"Retry-After": "42"})
    sent(page, name)
    expect(page.get_by_role("alert")).to_contain_text(re.compile("Try again in 4[0-2] seconds"))
    expect_values(page, name)
    complaints.texts.clear()


BUSY = '{"code":"database.error","msg":"No.","data":null,"error":null}'
GATEWAY = "<html>Bad gateway"


@pytest.mark.parametrize(
    ("name", "status", "body"), [*((name, 503, BUSY) for name in FORMS), ("register", 502, GATEWAY)]
)
def test_where_nobody_knows_whether_it_was_done_it_is_not_done_again(
    page: Page, site: Site, complaints: Complaints, name: str, status: int, body: str
) -> None:
    calls = []

    def answer(route: Route) -> None:
        calls.append(route.request.url)
        route.fulfill(status=status, body=body)

    page.route(FORMS[name][2], answer)
    sent(page, name)
    expect(page.get_by_role("alert")).to_contain_text(FORMS[name][3])
    expect_values(page, name)
    assert len(calls) == 1
    complaints.texts.clear()


@pytest.mark.parametrize("name", FORMS)
def test_without_a_connection_the_form_says_so(
    page: Page, site: Site, complaints: Complaints, name: str
) -> None:
    opens, values, _, _ = FORMS[name]
    opens(page)
    fill(page, **values)
    page.context.set_offline(True)
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("No connection.")
    expect_values(page, name)
    page.context.set_offline(False)
    complaints.texts.clear()


@pytest.mark.parametrize(
    ("pattern", "opens", "seen"),
    [
        ("**/auth/invitations/*", open_invite, "You are invited"),
        ("**/auth/check", open_setup, "Set up Gatehouse"),
    ],
)
def test_what_a_page_has_to_know_is_asked_again(
    page: Page, site: Site, complaints: Complaints, pattern: str, opens: Open, seen: str
) -> None:
    refused = []

    def refuse_once(route: Route) -> None:
        if refused:
            route.fallback()
        else:
            refused.append(route.request.url)
            route.abort()

    answered(page, pattern, 200, "success", {**INVITATION, **STATE, "setup_state": "needs_admin"})
    page.route(pattern, refuse_once)
    with page.expect_event("requestfailed"):
        page.goto("/invite/abc" if opens is open_invite else "/setup")
    expect(page.get_by_role("heading", name=seen)).to_be_visible()
    expect(page.get_by_label("Username")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(refused) == 1
    complaints.texts.clear()


def test_a_browser_that_keeps_no_cookies_is_told_so(page: Page, site: Site) -> None:
    answered(page, "**/auth/register", 201, "success", {})
    answered(page, "**/auth/login", 200, "success", {"status": "authenticated"})
    sent(page, "register")
    expect(page.get_by_role("alert")).to_contain_text("Your browser did not keep the sign-in.")


def test_an_account_whose_sign_in_failed_is_there_nevertheless(
    page: Page, site: Site, complaints: Complaints
) -> None:
    answered(page, "**/auth/register", 201, "success", {})
    answered(page, "**/auth/login", 503, "database.error")
    sent(page, "register")
    page.wait_for_url("**/login?registered=1")
    expect(page.get_by_text("Your account is ready. Sign in.")).to_be_visible()
    complaints.texts.clear()


def test_the_keyboard_is_enough(page: Page, site: Site) -> None:
    page.goto("/register")
    expect(page.get_by_role("button", name="Show the password")).to_be_visible()
    page.get_by_role("link", name="Gatehouse").focus()
    for text in (*ACCOUNT.values(), ""):
        page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Space")  # shows the password
    expect(page.get_by_label("Password", exact=True)).to_have_attribute("type", "text")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings/profile")
    expect(page.locator("#me")).to_contain_text("bob")


# --- accessibility ----------------------------------------------------------------------------


def complaining(page: Page) -> None:
    open_setup(page)
    fill(page, username="b b", email="bob@", password="short")
    send(page)
    expect(page.get_by_text("The password is too short")).to_be_visible()


def taken(page: Page) -> None:
    answered(page, "**/auth/register", 400, "auth.email_exists")
    sent(page, "register")
    expect(page.get_by_text("There is an account with this address.")).to_be_visible()


def doubtful(page: Page) -> None:
    answered(page, "**/auth/register", 503, "database.error")
    sent(page, "register")
    expect(page.get_by_role("alert").get_by_role("link")).to_be_visible()


def closed(page: Page) -> None:
    answered(page, "**/auth/register", 403, "auth.registration_disabled")
    sent(page, "register")
    expect(page.get_by_role("heading", name="Registration is closed")).to_be_visible()


def mailed(page: Page) -> None:
    answered(page, "**/reset/request", 200, "success", {})
    sent(page, "reset")
    expect(page.get_by_role("button", name="Send again in")).to_be_visible()


def link_over(page: Page) -> None:
    answered(page, "**/reset/confirm", 400, "auth.contact_verification_expired")
    sent(page, "new password")
    expect(page.get_by_text("The link is too old.")).to_be_visible()


def incomplete(page: Page) -> None:
    page.goto("/reset-password?token=")
    expect(page.get_by_text("The link is incomplete.")).to_be_visible()


def invited_while_signed_in(page: Page) -> None:
    signed_in(page)
    open_invite(page)
    expect(page.get_by_text("You are signed in as ada.")).to_be_visible()


def invitation_awaited(page: Page) -> None:
    answered(page, "**/auth/invitations/*", 503, "database.error")
    page.goto("/invite/abc")
    expect(page.get_by_role("button", name="Try again now")).to_be_visible()


def invitation_over(page: Page) -> None:
    answered(page, "**/auth/invitations/*", 400, "auth.invitation_accepted")
    page.goto("/invite/abc")
    expect(page.get_by_role("heading", name="This invitation was used")).to_be_visible()


def wrong_password(page: Page) -> None:
    answered(page, "**/auth/password", 401, "auth.credentials_failed")
    sent(page, "force")
    expect(page.get_by_text("This is not your current password.")).to_be_visible()


def storage(setup_state: str, role: str, heading: str) -> Open:
    """Return what opens the end of the set-up."""

    def opens(page: Page) -> None:
        signed_in(page, role=role)
        answered(page, "**/auth/check", 200, "success", {**STATE, "setup_state": setup_state})
        page.goto("/setup/storage")
        expect(page.get_by_role("heading", name=heading)).to_be_visible()

    opens.__name__ = f"storage_{setup_state}_{role}"
    return opens


STATES = [
    open_setup, complaining, open_register, taken, doubtful, closed, open_reset, mailed,
    open_new_password, link_over, incomplete, invited_while_signed_in, invitation_awaited,
    invitation_over, open_force, wrong_password,
    storage("needs_storage", "admin", "Finish the set-up"),
    storage("needs_storage", "user", "Finish the set-up"),
    storage("ready", "admin", "Everything is set up"),
]  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_no_barrier_is_found_and_nothing_is_wider_than_the_screen(
    chromium: Browser, site: Site, state: Open
) -> None:
    try:
        found = barriers_of(chromium, site, lambda page, _: state(page))
    except npm.Missing as reason:
        pytest.skip(f"no axe-core: {reason}")
    assert found == {"light": [], "dark": []}
