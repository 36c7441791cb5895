"""What goes wrong at a bad moment in the consoles: it is said where it happened, and truly."""

from playwright.sync_api import Page, Route, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import (
    Site,
    answered,
    ask,
    fill,
    open_as,
    send,
)

pytestmark = needs_chromium


def send_dialog(page: Page) -> None:
    page.get_by_role("dialog").locator("[type=submit]").click()


def test_what_was_not_answered_is_not_called_undone(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.add("mallory")
    problem = page.locator("#problem")
    open_as(page, site.ada, "/admin/users")
    team = ask(page, "/admin/teams", {"name": "Blue", "admin_identifier": "ada"})
    # A search goes on while the service is away.
    answered(page, "**/admin/users?*", 503, "database.error")
    page.get_by_label("Search").press_sequentially("mallory", delay=150)
    expect(page.get_by_label("Search")).to_have_value("mallory")
    expect(problem).to_contain_text("The service is busy")
    page.unroute_all()
    page.get_by_label("Role").select_option("user")
    expect(page.get_by_role("link", name="mallory")).to_be_visible()
    expect(problem).to_be_hidden()
    # A change whose answer is lost.
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
    expect(page.get_by_role("alert")).to_contain_text("this may or may not have been done")
    page.unroute_all()
    # A dialog that closes before it knows.
    page.goto(f"/admin/teams/{team['id']}")
    page.get_by_role("button", name="Add a member").click()
    fill(page, identifier="bob")
    page.route("**/members", lambda route: route.abort())
    page.get_by_role("dialog").locator("[type=submit]").click()
    expect(problem).to_contain_text("this may or may not have been done")
    complaints.forgive()
