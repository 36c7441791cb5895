"""Pages of administrators that show: overview, audit log, health."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Route, expect

from app.settings.page_keys import LANGUAGES
from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import (
    Site,
    answered,
    barriers,
    demand_confirmation,
    fill,
    open_as,
    pale_in_the_dark,
)

pytestmark = needs_chromium


def test_the_overview_counts_and_draws(page: Page, site: Site) -> None:
    site.add("bob", role="user")
    wrong = {"identifier": "ada", "password": "a wrong password"}
    assert page.context.request.post("/api/v1/auth/login", data=wrong).status == 401
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
    page.wait_for_url("**/admin/overview?days=7")
    plot.get_by_text("Show as a table").click()
    expect(plot.get_by_role("row")).to_have_count(8)
    expect(page.get_by_role("region", name="Latest events")).to_contain_text("was refused")
    assert barriers(page) + pale_in_the_dark(page) == []
    # First steps stay until they are hidden.
    steps = page.get_by_role("region", name="First steps")
    expect(steps.get_by_role("link", name="Set up the mail server")).to_be_visible()
    # The address is set, so that there is nothing to be done about it.
    expect(steps.get_by_text("Set the address")).to_contain_text("(done)")
    steps.get_by_role("button", name="Hide").click()
    # What is not healthy is said first.
    data = page.evaluate("fetch('/api/v1/admin/overview').then((one) => one.json())")["data"]
    mail = {"name": "mail", "status": "unhealthy", "message": "<b>refused</b>", "sentences": []}
    data["system_health"] |= {"status": "degraded", "components": [mail]}
    answered(page, "**/api/v1/admin/overview?*", 200, "success", data)
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("Not everything works.")
    expect(page.get_by_role("status")).to_contain_text("Mail: <b>refused</b>")
    expect(page.get_by_role("region", name="Latest events")).to_be_visible()
    expect(steps).to_have_count(0)


MILLION = 1_000_000
# Labels of plots that lie on each other or beyond the plot, numbers of tiles that are broken.
ILL_PLACED = """() => {
  const found = [];
  for (const svg of document.querySelectorAll(".plot svg")) {
    const whole = svg.getBoundingClientRect();
    const labels = [...svg.querySelectorAll(".plot-text")];
    const boxes = labels.map((one) => one.getBoundingClientRect());
    boxes.forEach((box, at) => {
      if (box.left < whole.left - 1 || box.right > whole.right + 1)
        found.push(`cut: ${labels[at].textContent}`);
      const near = boxes.slice(at + 1).some((other) => box.left < other.right
        && other.left < box.right && box.top < other.bottom - 3 && other.top < box.bottom - 3);
      if (near) found.push(`overlaps: ${labels[at].textContent}`);
    });
  }
  for (const tile of document.querySelectorAll(".tile-number")) {
    const range = document.createRange();
    range.selectNodeContents(tile);
    if (range.getClientRects().length > 1 || tile.scrollWidth > tile.clientWidth)
      found.push(`broken: ${tile.textContent}`);
  }
  return found;
}"""


def test_large_numbers_and_labels_have_room(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/overview")
    data = page.evaluate("fetch('/api/v1/admin/overview?days=90').then((one) => one.json())")[
        "data"
    ]
    data["stats"] = dict.fromkeys(data["stats"], MILLION)
    reports = [one | {"sign_ins": MILLION, "new_users": 20_001} for one in data["daily_reports"]]

    def answer(route: Route) -> None:
        [days] = parse_qs(urlsplit(route.request.url).query)["days"]
        shown = data | {"daily_reports": reports[: int(days)]}
        answered = {"code": "success", "msg": "", "data": shown, "error": None}
        route.fulfill(json=answered)

    page.route("**/api/v1/admin/overview?*", answer)
    for language in LANGUAGES:
        page.goto(f"/admin/overview?lang={language}")
        expect(page.locator(".tile")).to_have_count(6)
        for days in ("7", "30", "90"):
            page.locator("[name=days]").select_option(days)
            expect(page.locator("#sign-ins .plot-column")).to_have_count(int(days))
            for width in (320, 390, 768, 1280, 1920):
                page.set_viewport_size({"width": width, "height": 800})
                page.wait_for_function(
                    """() => [...document.querySelectorAll(".plot-picture")].every((one) =>
                      one.firstChild.getAttribute("width") == one.clientWidth)"""
                )
                assert page.evaluate(ILL_PLACED) == [], (language, days, width)
    page.goto("/admin/overview?lang=en")


def test_the_audit_log_is_searched_read_and_exported(
    page: Page, site: Site, complaints: Complaints, tmp_path: Path
) -> None:
    # Nobody is taken for somebody else by the name that is shown.
    mallory = site.add("mallory")
    open_as(page, mallory, "/settings/profile")
    fill(page, display_name="ada")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    page.context.clear_cookies()
    open_as(page, site.ada, "/admin/audit")
    rows = page.get_by_role("row")
    changed = rows.filter(has_text="changed the profile")
    expect(changed.get_by_role("link")).to_have_text(re.compile(r"mallory \(ada\)"))
    expect(rows.filter(has_text="signed in")).to_have_count(2)
    page.get_by_label("Event").select_option("user_logout")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    expect(page).to_have_url(re.compile("action=user_logout"))
    page.reload()
    expect(page.get_by_label("Event")).to_have_value("user_logout")
    page.get_by_role("button", name="Clear the filters").click()
    expect(rows.filter(has_text="signed in")).to_have_count(2)
    page.get_by_text("More filters").click()
    fill(page, after="2999-01-01T00:00")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    fill(page, after="2001-01-01T00:00", keyword="ada")
    signed_in = rows.filter(has_text="signed in")
    expect(signed_in).to_have_count(1)
    signed_in.get_by_role("button", name="ada signed in").click()
    dialog = page.get_by_role("dialog", name=re.compile("ada.* signed in"))
    expect(dialog).to_contain_text("Second step neededno")
    assert barriers(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON Lines").click()
    file = tmp_path / "log.jsonl"
    download.value.save_as(file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["entity_name"] for line in lines} == {"ada"}
    # Long after the sign-in, after a confirmation.
    demand_confirmation(page, site)
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="CSV").click()
    confirmation = page.get_by_role("dialog", name="Confirm")
    confirmation.get_by_label("Password").fill(site.ada.password)
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".csv")
    assert "user_login" in download.value.path().read_text()
    complaints.take_refusal(412)
    # Settings have names for readers, exports filters.
    site.configure(auth_allow_user_registration=False)
    page.goto("/admin/audit?lang=de")
    page.get_by_role("button", name="die Einstellung „Registrierung möglich“ geändert").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("auth_allow_user_registration")
    expect(dialog).to_contain_text("WertAus")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Protokoll exportiert").first.click()
    expect(dialog).to_contain_text("FilterVon: 01.01.2001, 00:00, Nach Namen suchen: ja")
    expect(dialog).not_to_contain_text("audit_log")
    page.goto("/admin/audit?lang=en")
    # The service itself can be searched for.
    page.goto("/admin/audit?user_id=0")
    expect(rows.filter(has_text="The command line")).not_to_have_count(0)
    expect(rows.filter(has_text="mallory")).to_have_count(0)


def test_health_is_examined_and_keys_are_changed(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/health")
    expect(page.get_by_role("heading", name=re.compile("Everything|attention"))).to_be_visible()
    page.get_by_role("button", name="Clean up now").click()
    expect(page.locator(".toast")).to_contain_text("deleted")
    keys = page.get_by_role("region", name="Keys")
    expect(keys.get_by_role("row")).to_have_count(2)
    keys.get_by_role("button", name="Make a new key").click()
    page.get_by_role("dialog").get_by_role("button", name="Make a new key").click()
    expect(page.locator(".toast")).to_contain_text("A new key is in use")
    expect(keys.get_by_role("row")).to_have_count(3)
    # The audit log says so in words.
    page.goto("/admin/audit")
    page.get_by_role("button", name="cleaned up").click()
    details = page.get_by_role("dialog").locator(".facts").last
    expect(details).to_contain_text("Accounts that nobody activated0")
    expect(details).not_to_contain_text(re.compile("_|cleanup"))
    # What is found is said in the language of the page.
    page.goto("/admin/health?lang=de")
    expect(page.get_by_role("listitem").filter(has_text="Geheime Schlüssel")).to_be_visible()
    found = page.locator(".checks")
    expect(found).to_contain_text("Es ist kein Anbieter eingeschaltet.")
    expect(found.locator("[lang=en]")).to_have_count(0)
    page.goto("/admin/health?lang=en")
    # A set-up that waits for storage is finished from here.
    answered(page, "**/auth/check", 200, "success", {"setup_state": "needs_storage"})
    page.reload()
    expect(page.get_by_role("link", name="Finish the set-up")).to_be_visible()


def test_administration_is_for_administrators(page: Page, site: Site) -> None:
    bob = site.add("bob")
    open_as(page, bob, "/admin/overview")
    expect(page.get_by_text("Only administrators may do this.")).to_be_visible()
    expect(page.get_by_role("link", name="Users")).to_have_count(0)
    page.locator("#account-menu summary").click()
    expect(page.get_by_role("link", name="Administration")).to_be_hidden()
