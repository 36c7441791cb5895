"""Browsers that keep nothing for the site but cookies: the pages work all the same."""

import pytest
from playwright.sync_api import Page, expect

from app.core.access import COMMAND_LINE
from app.invitations import service as invitations
from app.pages.registry import PAGES
from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD, KnownUser
from tests.support.leaks import watch
from tests.support.pages import (
    Site,
    fill,
    is_complete,
    is_drawn,
    is_ready,
    is_signed_in,
    send,
    sign_in,
    sign_in_by_api,
    sign_out,
)

pytestmark = needs_chromium

BOB = KnownUser(2, "bob", "bob@example.com", PASSWORD)
# What Firefox and Chromium do where a site may not store anything.
BLOCKED = """
const refuse = () => { throw new DOMException("The operation is insecure.", "SecurityError"); };
for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"]) {
  Object.defineProperty(window, name, { get: refuse });
}
window.BroadcastChannel = class { constructor() { refuse(); } };
LockManager.prototype.request = async () => refuse();
"""
NO_COOKIES = """
Object.defineProperty(Document.prototype, "cookie", { get: refuse, set: refuse });
"""
IGNORED_COOKIES = """
Object.defineProperty(Document.prototype, "cookie", { get: () => "", set: () => undefined });
"""
# Where pages lead whoever is signed in and has nothing to do there.
LED_ON = {"/force-password-change": "/settings/profile", "/setup": "/login"}
FULL = """
Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
"""


@pytest.fixture(params=[BLOCKED, FULL], ids=["blocked", "full"])
def page(page: Page, request: pytest.FixtureRequest) -> Page:
    page.add_init_script(request.param)
    return page


def test_a_forgotten_password_is_replaced_in_another_language(
    page: Page, site: Site, complaints: Complaints
) -> None:
    """Choosing it loads the page again, and loading loses nothing."""
    site.post("/auth/password/reset/request", {"email": site.ada.email})
    page.goto(site.mailed())
    expect(page.get_by_role("heading", name="Choose a new password")).to_be_visible()
    page.get_by_label("Language").select_option("de")
    expect(page.get_by_role("heading", name="Neues Passwort wählen")).to_be_visible()
    page.reload()
    fill(page, new_password="a new password")
    send(page)
    page.wait_for_url("**/login?reset=1")
    is_ready(page)
    fill(page, identifier=site.ada.username, password="a new password")
    send(page)
    page.wait_for_url("**/settings/profile")


def test_an_invitation_is_accepted(page: Page, site: Site) -> None:
    created = invitations.create(site.rt, COMMAND_LINE, email=BOB.email)
    watch.note(created.token)
    page.goto(f"/invite/{created.token}?lang=de")
    expect(page.get_by_label("E-Mail-Adresse")).to_have_value(BOB.email)
    page.get_by_label("Sprache").select_option("en")
    expect(page.get_by_label("E-mail address")).to_have_value(BOB.email)
    fill(page, username="bob", password=PASSWORD)
    send(page)
    is_signed_in(page, BOB)


def test_a_session_begins_goes_on_and_ends(page: Page, site: Site, complaints: Complaints) -> None:
    page.goto("/login")
    page.get_by_label("Username or e-mail").fill(site.ada.username)
    page.get_by_role("link", name="Forgot password?").click()
    page.wait_for_url("**/reset-password")
    page.goto("/login")
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    page.context.clear_cookies(name="service_access")
    fill(page, display_name="Ada Lovelace")
    send(page)
    expect(page.locator(".toast")).to_be_visible()
    complaints.take_refusal(401)
    sign_out(page)
    page.wait_for_url("**/login?signed_out=1")


def test_every_page_is_drawn(page: Page, site: Site) -> None:
    sign_in_by_api(page, site.ada)
    for one in PAGES:
        if "<" in one.path:
            continue
        page.goto(one.path)
        page.wait_for_url(f"**{LED_ON.get(one.path, one.path)}")
        is_complete(page)
        is_drawn(page)
        expect(page.locator("#problem")).to_be_hidden()


@pytest.mark.parametrize("cookies", [NO_COOKIES, IGNORED_COOKIES], ids=["refused", "ignored"])
def test_what_needs_no_session_works_without_cookies(page: Page, site: Site, cookies: str) -> None:
    page.add_init_script(f"{{ {BLOCKED} {cookies} }}")
    site.post("/auth/password/reset/request", {"email": site.ada.email})
    page.goto(site.mailed())
    expect(page.get_by_role("heading", name="Choose a new password")).to_be_visible()
    page.get_by_label("Language").select_option("de")
    expect(page.get_by_role("heading", name="Neues Passwort wählen")).to_be_visible()
    fill(page, new_password="a new password")
    send(page)
    page.wait_for_url("**/login?reset=1")
    is_ready(page)
    sign_in(page, site.ada, "a new password")
    expect(page.get_by_text("Your browser did not keep you signed in.")).to_be_visible()
