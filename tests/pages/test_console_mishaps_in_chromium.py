"""What goes wrong at a bad moment in the consoles: it is said where it happened, and truly."""

import re

from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import audit_rows
from tests.support.launcher import eventually
from tests.support.pages import (
    Site,
    answered,
    ask,
    fill,
    is_drawn,
    let_time_pass,
    open_as,
    opened,
    send,
    sign_in_by_api,
)

pytestmark = needs_chromium


def send_dialog(page: Page) -> None:
    page.get_by_role("dialog").locator("[type=submit]").click()


def test_nobody_is_taken_for_somebody_else_in_the_audit_log(
    chromium: Browser, page: Page, site: Site, complaints: Complaints
) -> None:
    mallory = site.add("mallory")
    with opened(chromium, site.origin, complaints) as hers:
        open_as(hers, mallory, "/settings/profile")
        fill(hers, display_name="ada")
        hers.get_by_role("button", name="Save").click()
        expect(hers.locator(".toast")).to_contain_text("Saved.")
    open_as(page, site.ada, "/admin/audit")
    row = page.get_by_role("row").filter(has_text="Profile changed")
    expect(row.get_by_role("link")).to_have_text(re.compile(r"mallory \(ada\)"))


def test_what_a_closed_dialog_was_refused_is_said(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/teams")
    team = ask(page, "/admin/teams", {"name": "Blue", "admin_identifier": "ada"})
    page.goto(f"/admin/teams/{team['id']}")
    page.get_by_role("button", name="Add a member").click()
    fill(page, identifier="bob")
    page.route("**/members", lambda route: route.abort())
    send_dialog(page)
    expect(page.locator("#problem")).to_contain_text("it is not known whether this was done")
    complaints.texts.clear()


def test_a_date_can_be_typed_into_a_filter(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/settings/activity")
    field = page.get_by_label("From")
    field.focus()
    page.keyboard.type("11262026", delay=400)
    expect(field).to_have_value("2026-11-26")
    expect(page.locator("#problem")).to_be_hidden()
    page.wait_for_url("**after=2026-11-26")


def test_a_search_goes_on_while_the_service_is_away(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/users")
    site.add("mallory")
    answered(page, "**/admin/users?*", 503, "database.error")
    page.get_by_label("Search").press_sequentially("mallory", delay=150)
    expect(page.get_by_label("Search")).to_have_value("mallory")
    expect(page.locator("#problem")).to_contain_text("The service is busy")
    page.unroute_all()
    page.get_by_label("Role").select_option("user")
    expect(page.get_by_role("link", name="mallory")).to_be_visible()
    expect(page.locator("#problem")).to_be_hidden()
    complaints.texts.clear()


def test_a_limit_in_a_dialog_says_how_long(page: Page, site: Site, complaints: Complaints) -> None:
    site.configure(auth_confirmation_max_age_secs=60)
    open_as(page, site.ada, "/settings/data")
    let_time_pass(site)
    page.wait_for_timeout(1500)
    page.get_by_role("button", name="JSON").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    answered(page, "**/auth/confirmation", 429, "rate_limited", **{"Retry-After": "90"})
    fill(page, password="wrong")
    send_dialog(page)
    expect(dialog.get_by_role("alert")).to_contain_text("Try again in 1:30.")
    complaints.texts.clear()


def test_a_change_without_an_answer_is_not_called_undone(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/users")
    page.get_by_role("button", name="New account").click()
    fill(page, username="grace", email="grace@example.com")

    def swallow(route: Route) -> None:
        if route.request.method == "POST":
            route.fetch()
            route.abort()
        else:
            route.fallback()

    page.route("**/admin/users", swallow)
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("it is not known whether this was done")
    complaints.texts.clear()


def test_the_service_itself_can_be_searched_for_in_the_audit_log(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/audit")
    page.goto("/admin/audit?user_id=0")
    expect(page.get_by_role("row").filter(has_text="the service")).to_have_count(1)
    expect(page.get_by_role("row").filter(has_text="ada")).to_have_count(0)


def test_two_changes_at_once_are_both_made(page: Page, site: Site) -> None:
    bob = site.add("bob")
    open_as(page, site.ada, f"/admin/users/{bob.id}")
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    page.evaluate(
        "() => { for (const name of ['enabled', 'must_change_password'])"
        " document.getElementById(name).click(); }"
    )
    eventually(lambda: len(audit_rows(site.rt, "admin_update_user")) == 2, "both changes")
    expect(page.locator("#enabled")).not_to_be_checked()
    expect(page.locator("#must_change_password")).to_be_checked()
    expect(page.locator("#problem")).to_be_hidden()


def test_sessions_are_gone_from_the_page_of_an_account_that_was_disabled(
    chromium: Browser, page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob")
    with opened(chromium, site.origin, complaints) as his:
        sign_in_by_api(his, bob)
    open_as(page, site.ada, f"/admin/users/{bob.id}")
    sessions = page.get_by_role("region", name="Sessions")
    expect(sessions.get_by_role("row")).to_have_count(2)
    page.locator("#enabled").click()
    expect(sessions.get_by_role("row")).to_have_count(0)


def test_who_locks_the_account_leaves_nothing_in_other_tabs(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/settings/activity")
    other = page.context.new_page()
    other.goto("/settings/security")
    expect(other.locator("#me")).to_contain_text("ada")
    is_drawn(other)
    page.get_by_role("button", name="Lock my account down").click()
    send_dialog(page)
    page.wait_for_url("**/login?signed_out=1")
    other.wait_for_url("**/login?signed_out=1")
    other.close()


def test_the_preview_of_a_mail_leaves_the_back_button_alone(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/mail/password_reset")
    preview = page.frame_locator("iframe")
    before = page.evaluate("history.length")
    for text in ("one", "two"):
        page.get_by_label("HTML").fill(f"<p>{text}</p>")
        expect(preview.get_by_text(text)).to_be_visible()
    assert page.evaluate("history.length") == before


def test_what_is_copied_is_said_in_a_dialog(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/settings/security")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Set up").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.locator(".said")).to_have_text("Copied")


def test_a_set_up_that_waits_for_storage_is_finished_from_the_console(
    page: Page, site: Site
) -> None:
    open_as(page, site.ada, "/admin/users")
    answered(page, "**/auth/check", 200, "success", {"setup_state": "needs_storage"})
    page.goto("/admin/health")
    expect(page.get_by_role("link", name="Finish the set-up")).to_be_visible()
