"""Lists of the consoles: rows that open, the way back, selections beyond a page; and the keys."""

import re

from playwright.sync_api import Locator, Page, Route, expect

from app.pages.registry import PAGES
from app.pages.texts import catalogues
from tests.support import factories
from tests.support.browser import Complaints, needs_chromium
from tests.support.fake_provider import FakeProvider
from tests.support.pages import Site, ask, barriers, is_drawn, open_as

pytestmark = needs_chromium


def bar(page: Page) -> Locator:
    return page.get_by_role("group", name="Change the selected accounts")


def test_rows_open_and_the_way_back_keeps_the_place(page: Page, site: Site) -> None:
    for number in range(60):
        site.add(f"user{number:02}")
    filtered = "/admin/users?keyword=user&sort_by=username&sort_order=asc&offset=0"
    open_as(page, site.ada, filtered)
    page.set_viewport_size({"width": 1000, "height": 500})
    rows = page.locator("tbody tr")
    expect(page.locator(".opens")).to_be_visible()
    # Boxes are ticked, and what is marked is not meant either.
    rows.nth(2).get_by_role("checkbox").check()
    rows.nth(2).locator(".select").click(position={"x": 2, "y": 2})
    expect(bar(page)).to_be_visible()
    for back in (page.go_back, page.get_by_role("link", name="Back to Users").click):
        rows.nth(40).get_by_text("active").click()
        page.wait_for_url("**/admin/users/*")
        expect(page.get_by_role("heading", name="user40", level=1)).to_be_visible()
        is_drawn(page)
        back()
        expect(page).to_have_url(re.compile(re.escape(filtered)))
        expect(rows.nth(40).get_by_role("link")).to_be_focused()
        expect(rows.nth(40)).to_be_in_viewport()
        assert page.evaluate("scrollY") > 1000
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/users/*")
    # Without anything remembered, the link leads to the list.
    page.evaluate("sessionStorage.clear()")
    page.reload()
    page.get_by_role("link", name="Back to Users").click()
    page.wait_for_url("**/admin/users")
    expect(rows).to_have_count(50)
    page.goto("/admin/audit?action=user_login")
    expect(page.locator(".opens")).to_be_visible()
    rows.first.locator("time").click()
    expect(page.get_by_role("dialog", name=re.compile("ada.* signed in"))).to_be_visible()
    page.goto("/admin/audit?action=user_login&lang=de")
    expect(rows.first).to_contain_text("ada hat sich angemeldet")


def test_a_card_opens_by_a_click_and_a_link_leads_back(
    page: Page, site: Site, provider: FakeProvider
) -> None:
    open_as(page, site.ada, "/admin/external-auth")
    expect(page.locator(".opens")).to_be_visible()
    page.get_by_text("Last sign-in").click()
    page.wait_for_url("**/admin/external-auth/local")
    page.get_by_role("link", name="Back to External sign-in").click()
    expect(page.get_by_role("link", name="Local login")).to_be_focused()


def test_all_accounts_that_match_are_changed_together(
    page: Page, site: Site, complaints: Complaints
) -> None:
    factories.add_many(site.rt, 450)
    open_as(page, site.ada, "/admin/users?sort_by=username&sort_order=asc")
    everything = page.get_by_role("button", name="Select all 451 accounts that match")
    page.get_by_label("Select all on this page").check()
    page.get_by_label("Select ada").uncheck()
    expect(everything).to_be_hidden()
    page.get_by_label("Select ada").check()
    everything.click()
    expect(bar(page)).to_contain_text("451 selected")
    expect(bar(page).get_by_role("button", name="Apply")).to_be_focused()
    page.set_viewport_size({"width": 320, "height": 640})
    page.evaluate("scrollTo(0, 0)")
    expect(bar(page)).to_be_in_viewport(ratio=1)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    end = page.locator("tbody tr").last.bounding_box()
    top = bar(page).bounding_box()
    assert end
    assert top
    assert end["y"] + end["height"] <= top["y"]
    assert barriers(page) == []
    page.get_by_role("button", name="Select none").click()
    expect(bar(page)).to_be_hidden()
    expect(page.get_by_label("Select all on this page")).to_be_focused()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_label("Select all on this page").check()
    everything.click()
    asked: list[int] = []

    def count(route: Route) -> None:
        asked.append(len((route.request.post_data_json or {})["ids"]))
        if len(asked) <= 4:
            route.continue_()
        else:
            route.fulfill(status=500, json={"code": "internal_server_error", "msg": "No."})

    page.route("**/admin/users/bulk", count)
    bar(page).get_by_role("button", name="Apply").click()
    page.get_by_role("dialog", name="451 accounts").get_by_role("button", name="Disable").click()
    refused = page.get_by_role("dialog", name="1 account was not changed")
    expect(refused).to_contain_text("ada: You cannot disable yourself.")
    expect(page.locator(".toast")).to_contain_text("450 accounts have been changed.")
    assert asked == [200, 200, 51]
    page.keyboard.press("Escape")
    # What ends it in between is said, and how far it came.
    page.get_by_label("Select all on this page").check()
    everything.click()
    bar(page).get_by_label("What to do").select_option("enable")
    bar(page).get_by_role("button", name="Apply").click()
    # So many are changed by no slip.
    page.get_by_role("dialog", name="451 accounts").get_by_role("button", name="Enable").click()
    expect(page.locator(".toast")).to_contain_text("200 of 451 accounts were changed")
    expect(page.get_by_role("alert").first).to_contain_text("That did not work.")
    complaints.take_refusal(500)


def test_accounts_that_the_list_does_not_show_any_more_are_not_selected(
    page: Page, site: Site
) -> None:
    factories.add_many(site.rt, 120)
    open_as(page, site.ada, "/admin/users")
    held: list[Route] = []
    page.route("**/admin/users?*limit=100*", lambda route: held.append(route))
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Select all 121 accounts that match").click()
    expect(page.locator(".list")).to_have_js_property("inert", True)
    page.get_by_label("Search").fill("many11")
    expect(page.locator("tbody tr")).to_have_count(11)
    [reading] = held
    reading.continue_()
    expect(page.locator(".list")).to_have_js_property("inert", False)
    expect(bar(page)).to_be_hidden()
    # One's own account is selected by hand alone.
    page.unroute("**/admin/users?*limit=100*")
    page.get_by_label("Search").fill("")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Created").click()
    expect(page.get_by_label("Select ada")).to_be_visible()
    page.get_by_role("button", name="Created").click()
    expect(page.get_by_label("Select ada")).to_have_count(0)
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Select all 121 accounts that match").click()
    expect(bar(page)).to_contain_text("120 selected")


def test_keys_lead_everywhere_and_are_taken_from_no_field(page: Page, site: Site) -> None:
    site.add("bob")
    open_as(page, site.ada, "/admin/users")
    team = {"name": "Bobsleigh", "description": "", "admin_identifier": "ada"}
    ask(page, "/admin/teams", team)
    is_drawn(page)
    dialog = page.get_by_role("dialog")
    search = page.get_by_label("Search")
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type("/?")
    expect(search).to_have_value("/?")
    search.fill("")
    page.keyboard.press("Control+k")
    expect(dialog.get_by_role("combobox", name="Go to")).to_be_focused()
    assert barriers(page) == []
    texts = catalogues()["en"].of("admin")
    navigation = {texts[f"{one.name}.title"] for one in PAGES if one.icon}
    shown = page.locator("#places > li > span:not(.hint)").all_inner_texts()
    assert navigation <= set(shown)
    page.keyboard.type("bob")
    expect(dialog.get_by_role("option")).to_have_text([re.compile("^bob"), re.compile("Bobsleigh")])
    page.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("option", selected=True)).to_contain_text("Bobsleigh")
    page.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("option", selected=True)).to_contain_text("bob@example.com")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="bob", level=1)).to_be_visible()
    for typed, path in (("your data", "/settings/data"), ("network", "/admin/settings/network")):
        page.goto("/admin/overview")
        is_drawn(page)
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Go to").fill(typed)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{path}*")
    # Single keys can be switched off; where they are is said in the menu.
    page.goto("/settings/profile")
    is_drawn(page)
    page.locator("#account-menu summary").click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(dialog).to_contain_text("Search on this page")
    assert barriers(page) == []
    dialog.get_by_label("Use single keys").uncheck()
    page.keyboard.press("Escape")
    expect(page.locator("#account-menu summary")).to_be_focused()
    page.keyboard.press("?")
    page.keyboard.press("Control+k")
    expect(dialog).to_have_accessible_name("Go to")
    expect(dialog.get_by_role("option", name="Security")).to_be_visible()
