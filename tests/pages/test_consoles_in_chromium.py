"""What both consoles have in common: nothing typed is lost, the focus stays, one account a page."""

import pytest
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
    let_time_pass,
    open_as,
    opened,
    sign_in,
)

pytestmark = needs_chromium


def end_sessions(site: Site) -> None:
    with site.rt.transaction() as session:
        session.execute(sa.delete(LoginSession))


@pytest.mark.parametrize(
    ("path", "name", "button"),
    [
        ("/settings/profile", "display_name", "Save"),
        ("/admin/mail/password_reset", "subject", "Save"),
    ],
)
def test_what_is_typed_outlives_the_session(
    page: Page, site: Site, complaints: Complaints, path: str, name: str, button: str
) -> None:
    open_as(page, site.ada, path)
    fill(page, **{name: "Typed with care"})
    page.wait_for_load_state("networkidle")
    end_sessions(site)
    page.get_by_role("button", name=button).click()
    expect(page.get_by_role("alert").first).to_contain_text("You were signed out.")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in in another tab").click()
    is_ready(opened.value)
    sign_in(opened.value, site.ada)
    expect(opened.value.locator("#me")).to_contain_text("ada")
    opened.value.close()
    page.get_by_role("button", name=button).click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    expect(page.locator(f"[name={name}]")).to_have_value("Typed with care")
    complaints.texts.clear()  # of the sessions that were over


def test_a_dialog_keeps_what_is_typed_when_the_session_has_ended(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/users")
    page.get_by_role("button", name="New account").click()
    fill(page, username="grace", email="grace@example.com")
    is_drawn(page)
    end_sessions(site)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    page.wait_for_load_state("networkidle")
    expect(dialog.get_by_role("alert")).to_contain_text("You were signed out.")
    expect(dialog.get_by_label("Username")).to_have_value("grace")
    complaints.texts.clear()


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


def test_a_sign_out_in_one_tab_is_one_in_all(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/settings/profile")
    other = page.context.new_page()
    other.goto("/settings/sessions")
    expect(other.locator("#me")).to_contain_text("ada")
    for tab in (page, other):
        is_drawn(tab)
    other.locator("#account-menu summary").click()
    other.get_by_role("button", name="Sign out", exact=True).last.click()
    other.wait_for_url("**/login?signed_out=1")
    page.wait_for_url("**/login?signed_out=1")
    other.go_back()  # what was shown there is nobody's any more
    other.wait_for_url("**/login?return_path=*")
    other.close()


def test_the_focus_stays_where_something_was_changed(page: Page, site: Site) -> None:
    bob = site.add("bob")
    open_as(page, site.ada, f"/admin/users/{bob.id}")
    switch = page.get_by_role("switch", name="Has to choose a new password")
    switch.focus()
    page.keyboard.press("Space")
    expect(switch).to_be_checked()
    expect(switch).to_be_focused()
    page.goto("/settings/profile")
    page.get_by_role("button", name="Gravatar").press("Enter")
    expect(page.get_by_role("region", name="Picture").locator(":focus")).to_have_count(1)


def test_a_name_that_differs_is_told(page: Page, site: Site) -> None:
    bob = site.add("bob")
    open_as(page, site.ada, f"/admin/users/{bob.id}")
    page.get_by_role("button", name="Delete account").click()
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_label("To go on, type bob")
    field.fill("bobby")
    field.press("Enter")
    expect(field).to_have_accessible_description("This is not the name.")
    expect(field).to_be_focused()
    field.fill("bob")
    expect(field).not_to_have_attribute("aria-invalid", "true")


def test_a_refusal_stands_where_it_belongs(page: Page, site: Site, complaints: Complaints) -> None:
    open_as(page, site.ada, "/admin/users")
    page.get_by_role("button", name="New account").click()
    fill(page, username="grace", email="grace@\u200b.de")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("mail")
    expect(dialog.locator("[aria-invalid=true]")).to_have_count(0)
    complaints.take_refusal(400)
    page.goto("/admin/users/invitations")
    page.get_by_role("button", name="Invite somebody").click()
    days = dialog.locator("[name=days]")
    fill(page, email="eve@example.com", days="99999")
    page.keyboard.press("Enter")
    expect(days).to_have_accessible_description("A whole number of days, from 1 to 365")


@pytest.mark.parametrize("path", ["/admin/mail/password_reset", "/admin/settings"])
def test_leaving_with_unsaved_text_is_asked_about(page: Page, site: Site, path: str) -> None:
    open_as(page, site.ada, path)
    page.locator("#subject, #branding_title").fill("Unsaved")
    asked = []

    def stay(dialog: object) -> None:
        asked.append(dialog)
        dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", stay)
    page.get_by_role("link", name="Overview").click()
    expect(page.locator("#subject, #branding_title")).to_have_value("Unsaved")
    assert len(asked) == 1
    page.remove_listener("dialog", stay)
    page.on("dialog", lambda dialog: dialog.accept())


def test_the_audit_log_is_exported_after_a_confirmation(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.configure(auth_confirmation_max_age_secs=300)
    open_as(page, site.ada, "/admin/audit")
    page.wait_for_load_state("networkidle")
    let_time_pass(site)
    page.wait_for_timeout(1500)  # until every worker knows the setting
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="CSV").click()
    confirmation = page.get_by_role("dialog", name="Confirm")
    confirmation.get_by_label("Password").fill(site.ada.password)
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".csv")
    assert "user_login" in download.value.path().read_text()
    complaints.take_refusal(412)


def test_what_the_mail_server_says_to_a_test_mail_is_shown(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.configure(mail_smtp_host="localhost", mail_smtp_port=1, mail_from_address="a@b.example")
    open_as(page, site.ada, "/admin/mail")
    page.wait_for_timeout(1500)  # until every worker knows the setting
    page.get_by_role("button", name="Send test mail").click()
    expect(page.get_by_role("alert").first).to_contain_text("The mail server refused the mail")
    complaints.take_refusal(503)


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
    expect(page.get_by_role("button", name="I have kept a copy")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/users/*")
    expect(page.get_by_role("heading", name="grace", level=1)).to_be_visible()
    press(page, "Enabled", "Space", "switch")
    expect(page.locator("#page-actions")).to_contain_text("disabled")
    press(page, "Invitations", role="link")
    page.wait_for_url("**/admin/users/invitations")
    press(page, "Invite somebody")
    page.keyboard.type("eve@example.com")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="I have kept a copy")).to_be_focused()
    page.keyboard.press("Enter")
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
        page.get_by_role("row").get_by_role("button", name="Details").first.click()
        expect(page.get_by_role("dialog")).to_contain_text(agent)
        assert page.locator("img[src=x]").count() == 0
