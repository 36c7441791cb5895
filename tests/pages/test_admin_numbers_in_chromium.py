"""Pages of administrators that show: overview, audit log, health."""

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import SMALL, Site, answered, barriers, fill, open_as, sign_in

pytestmark = needs_chromium


def is_narrow(page: Page) -> bool:
    page.set_viewport_size(SMALL)
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_the_overview_counts_and_draws(page: Page, site: Site, complaints: Complaints) -> None:
    site.add("bob", role="user")
    page.goto("/login")
    sign_in(page, site.ada, "a wrong password")
    expect(page.get_by_role("alert")).to_be_visible()
    complaints.take_refusal(401)
    open_as(page, site.ada, "/admin/overview")
    accounts = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="Accounts"))
    expect(accounts).to_contain_text("2")
    plot = page.get_by_role("region", name="Sign-ins per day")
    picture = plot.get_by_role("img")
    expect(picture).to_have_accessible_name(re.compile(r"30 days\. Completed: .* today 1\."))
    expect(plot).to_contain_text("Today: Completed 1, Refused 1")
    plot.get_by_role("button", name="Day before").click()
    expect(plot).to_contain_text("Completed 0, Refused 0")
    plot.get_by_label("Period").select_option("7")
    expect(picture).to_have_accessible_name(re.compile("7 days"))
    assert page.url.endswith("?days=7")
    plot.get_by_text("Show as a table").click()
    expect(plot.get_by_role("row")).to_have_count(8)
    expect(page.get_by_role("region", name="Latest events")).to_contain_text("Sign-in refused")
    assert barriers(page) == []
    page.emulate_media(color_scheme="dark")
    assert barriers(page) == []
    assert is_narrow(page)


def test_first_steps_stay_until_they_are_hidden(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/overview")
    steps = page.get_by_role("region", name="First steps")
    expect(steps.get_by_role("link", name="Set up the mail server")).to_be_visible()
    # The address is set, so that there is nothing to be done about it.
    expect(steps.get_by_text("Set the address")).to_contain_text("(done)")
    steps.get_by_role("button", name="Hide").click()
    page.reload()
    expect(page.get_by_role("region", name="Latest events")).to_be_visible()
    expect(steps).to_have_count(0)


def test_what_is_not_healthy_is_said_first(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/overview")
    data = page.evaluate("fetch('/api/v1/admin/overview').then((one) => one.json())")["data"]
    mail = {"name": "mail", "status": "unhealthy", "message": "<b>refused</b>"}
    data["system_health"] |= {"status": "degraded", "components": [mail]}
    answered(page, "**/admin/overview?*", 200, "success", data)
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("Not everything works.")
    expect(page.get_by_role("status")).to_contain_text("mail: <b>refused</b>")


def test_the_audit_log_is_searched_read_and_exported(
    page: Page, site: Site, tmp_path: Path
) -> None:
    open_as(page, site.ada, "/admin/audit")
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="Signed in")).to_have_count(1)
    page.get_by_label("Event").select_option("user_logout")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    assert "action=user_logout" in page.url
    page.reload()
    expect(page.get_by_label("Event")).to_have_value("user_logout")
    page.get_by_role("button", name="Clear the filters").click()
    expect(rows.filter(has_text="Signed in")).to_have_count(1)
    page.get_by_text("More filters").click()
    fill(page, after="2999-01-01T00:00")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    fill(page, after="2001-01-01T00:00", keyword="ada")
    expect(rows.filter(has_text="Signed in")).to_have_count(1)
    rows.filter(has_text="Signed in").get_by_role("button", name="Details").click()
    dialog = page.get_by_role("dialog", name="Signed in")
    expect(dialog).to_contain_text("mfa required")
    assert barriers(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON Lines").click()
    file = tmp_path / "log.jsonl"
    download.value.save_as(file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["entity_name"] for line in lines} == {"ada"}
    assert is_narrow(page)


def test_health_is_examined_and_keys_are_changed(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/health")
    expect(page.get_by_role("heading", name=re.compile("Everything|attention"))).to_be_visible()
    assert barriers(page) == []
    page.get_by_role("button", name="Clean up now").click()
    expect(page.locator(".toast")).to_contain_text("deleted")
    keys = page.get_by_role("region", name="Keys")
    expect(keys.get_by_role("row")).to_have_count(2)
    keys.get_by_role("button", name="Make a new key").click()
    page.get_by_role("dialog").get_by_role("button", name="Make a new key").click()
    expect(page.locator(".toast")).to_contain_text("A new key is in use")
    expect(keys.get_by_role("row")).to_have_count(3)
    assert is_narrow(page)


def test_administration_is_for_administrators(page: Page, site: Site) -> None:
    bob = site.add("bob")
    open_as(page, bob, "/admin/overview")
    expect(page.get_by_text("Only administrators may do this.")).to_be_visible()
    expect(page.get_by_role("link", name="Users")).to_have_count(0)
    page.locator("#account-menu summary").click()
    expect(page.get_by_role("link", name="Administration")).to_be_hidden()
