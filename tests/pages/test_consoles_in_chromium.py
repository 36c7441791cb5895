"""What both consoles have in common: nothing typed is lost, the focus stays, one account a page."""

import sqlalchemy as sa
from playwright.sync_api import Browser, Locator, Page, expect

from app.sessions.models import LoginSession
from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import (
    Site,
    ask,
    fill,
    is_drawn,
    is_ready,
    open_as,
    opened,
    sign_in,
    sign_in_by_api,
)

pytestmark = needs_chromium


def end_sessions(site: Site) -> None:
    with site.rt.transaction() as session:
        session.execute(sa.delete(LoginSession))


def test_what_is_typed_outlives_the_session(page: Page, site: Site, complaints: Complaints) -> None:
    sign_in_by_api(page, site.ada)
    for path, name in (
        ("/settings/profile", "display_name"),
        ("/admin/mail/password_reset", "subject"),
    ):
        page.goto(path)
        expect(page.locator("#me")).to_contain_text("ada")
        is_drawn(page)
        fill(page, **{name: "Typed with care, ada"})
        page.wait_for_load_state("networkidle")
        end_sessions(site)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert").first).to_contain_text("You were signed out.")
        with page.context.expect_page() as other:
            page.get_by_role("link", name="Sign in in another tab").click()
        is_ready(other.value)
        sign_in(other.value, site.ada)
        expect(other.value.locator("#me")).to_contain_text("ada")
        other.value.close()
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".toast")).to_contain_text("Saved.")
        expect(page.locator(f"[name={name}]")).to_have_value("Typed with care, ada")
    # In a dialog as well.
    page.goto("/admin/users")
    page.get_by_role("button", name="New account").click()
    fill(page, username="grace", email="grace@example.com")
    is_drawn(page)
    end_sessions(site)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("You were signed out.")
    expect(dialog.get_by_label("Username")).to_have_value("grace")
    complaints.forgive()  # of the sessions that were over


def test_a_page_of_one_account_changes_no_other(page: Page, site: Site) -> None:
    bob = site.add("bob")
    open_as(page, site.ada, "/settings/profile")
    other = page.context.new_page()
    other.goto("/settings/profile")
    expect(other.locator("#me")).to_contain_text("ada")
    is_drawn(other)
    fill(page, display_name="Ada")
    ask(other, "/auth/logout")
    open_as(other, bob, "/settings/profile")
    expect(page.locator("#me")).to_contain_text("bob")
    expect(page.get_by_label("Display name")).to_have_value("")
    other.close()


# --- by keyboard alone ----------------------------------------------------------------------------


def tab_to(page: Page, control: Locator) -> None:
    """Press Tab until a control has the focus."""
    expect(control).to_be_visible()
    for _ in range(120):
        page.keyboard.press("Tab")
        if control.evaluate("(one) => one === document.activeElement"):
            return
    raise AssertionError("no way leads there")


def press(page: Page, name: str, key: str = "Enter", role: str = "button") -> None:
    tab_to(page, page.get_by_role(role, name=name, exact=True).last)  # type: ignore[arg-type]
    page.keyboard.press(key)


def test_the_keyboard_alone_manages_an_account(page: Page, site: Site) -> None:
    site.post("/auth/login", {"identifier": "ada", "password": site.ada.password})
    open_as(page, site.ada, "/settings/profile")
    toast = page.locator(".toast")
    tab_to(page, page.get_by_label("Display name"))
    page.keyboard.type("Ada L.")
    page.keyboard.press("Enter")
    expect(page.locator("#me")).to_contain_text("Ada L.")
    press(page, "Sessions", role="link")
    page.wait_for_url("**/settings/sessions")
    press(page, "Sign out everywhere else")
    press(page, "Sign out everywhere else")
    expect(page.get_by_role("row")).to_have_count(2)
    press(page, "Preferences", role="link")
    page.wait_for_url("**/settings/preferences")
    tab_to(page, page.locator("#sort_by"))
    page.keyboard.press("ArrowDown")
    expect(toast).to_contain_text("Saved.")
    press(page, "Security", role="link")
    page.wait_for_url("**/settings/security")
    press(page, "Change")
    page.keyboard.type("ada-new@example.com")
    page.keyboard.press("Enter")
    expect(toast).to_contain_text("ada-new@example.com")
    press(page, "Set up")
    expect(page.get_by_role("dialog").get_by_label("Code from the app")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Set up")).to_be_focused()


def test_the_keyboard_alone_administers(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/users")
    toast = page.locator(".toast")
    press(page, "New account")
    page.keyboard.type("grace")
    page.keyboard.press("Tab")
    page.keyboard.type("grace@example.com")
    page.keyboard.press("Enter")
    expect(
        page.get_by_role("dialog").get_by_role("button", name="Copy", exact=True)
    ).to_be_focused()
    press(page, "I have kept a copy")
    page.wait_for_url("**/admin/users/*")
    expect(page.get_by_role("heading", name="grace", level=1)).to_be_visible()
    press(page, "Enabled", "Space", "switch")
    expect(page.locator("#page-actions")).to_contain_text("disabled")
    press(page, "Invitations", role="link")
    page.wait_for_url("**/admin/users/invitations")
    press(page, "Invite somebody")
    page.keyboard.type("eve@example.com")
    page.keyboard.press("Enter")
    expect(
        page.get_by_role("dialog").get_by_role("button", name="Copy", exact=True)
    ).to_be_focused()
    press(page, "I have kept a copy")
    expect(page.locator("tbody tr")).to_contain_text("eve@example.com")
    press(page, "Settings", role="link")
    page.wait_for_url("**/admin/settings")
    tab_to(page, page.locator("#branding_title"))
    page.keyboard.press("Control+a")
    page.keyboard.type("Files")
    press(page, "Save")
    expect(toast).to_contain_text("Saved.")
    row = page.locator(".setting", has=page.locator("#branding_title"))
    expect(row).to_contain_text("by ada")
    press(page, "Health", role="link")
    page.wait_for_url("**/admin/health")
    press(page, "Clean up now")
    expect(toast).to_contain_text("deleted")


# --- what people control --------------------------------------------------------------------------


def test_markup_in_what_a_browser_calls_itself_is_shown_as_text(
    chromium: Browser, site: Site, complaints: Complaints
) -> None:
    agent = "<img src=x onerror=alert(1)>/1.0"
    with opened(chromium, site.origin, complaints, user_agent=agent) as page:
        open_as(page, site.ada, "/settings/profile")
        for path in ("/settings/sessions", "/settings/activity", "/admin/overview", "/admin/audit"):
            page.goto(path)
            expect(page.locator("#content:not([aria-busy])")).to_be_visible()
            page.wait_for_load_state("networkidle")
            assert page.locator("img[src=x]").count() == 0, path
        page.get_by_role("row").get_by_role("button", name="signed in").first.click()
        expect(page.get_by_role("dialog")).to_contain_text(agent)
        assert page.locator("img[src=x]").count() == 0
