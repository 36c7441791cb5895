"""Administrators' pages about the installation: settings, mail, providers, policy groups."""

import re
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import Dialog, Locator, Page, Route, expect

from app.storage_policies.models import StoragePolicyGroup
from tests.support.browser import Complaints, needs_chromium
from tests.support.external import add_provider
from tests.support.fake_provider import CLIENT_ID, CLIENT_SECRET, FakeProvider
from tests.support.launcher import eventually
from tests.support.pages import Site, answered, ask, barriers, is_drawn, open_as, told

pytestmark = needs_chromium


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def toast(page: Page) -> Locator:
    return page.locator(".toast")


def stays(page: Page, field: Locator) -> None:
    """Expect to be asked, on leaving, about the text of a field that is not saved."""
    asked = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog)
        dialog.dismiss()

    typed = field.input_value()
    page.on("dialog", stay)
    page.get_by_role("link", name="Overview").click()
    expect(field).to_have_value(typed)
    assert len(asked) == 1
    page.remove_listener("dialog", stay)


def setting(page: Page, key: str) -> object:
    return told(page, f"/admin/config/{key}")["value"]


def test_settings_are_drafts_until_all_are_saved(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/settings")
    title = page.locator("#branding_title")
    expect(title).to_have_value("Gatehouse")
    title.fill("Files")
    page.locator("#branding_description").fill("For all of us")
    expect(page.get_by_text("2 changes are not saved")).to_be_visible()
    stays(page, title)
    page.get_by_role("link", name="Sessions", exact=True).click()
    minutes = page.locator("#auth_access_token_ttl_secs")
    minutes.fill("0")
    page.get_by_role("button", name="Save").click()
    expect(minutes).to_have_attribute("aria-invalid", "true")
    assert setting(page, "branding_title") == "Gatehouse"
    minutes.fill("10")
    page.keyboard.press("Control+s")
    expect(toast(page)).to_contain_text("Saved.")
    assert setting(page, "branding_title") == "Files"
    assert setting(page, "branding_description") == "For all of us"
    assert setting(page, "auth_access_token_ttl_secs") == "600"
    page.get_by_label("Search all settings").fill("branding_title")
    row = page.locator(".setting", has=title)
    expect(row).to_contain_text("changed")
    row.get_by_role("button", name="Back to default").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("1 change is not saved")).to_be_hidden()
    expect(title).to_have_value("Gatehouse")
    assert setting(page, "branding_title") == "Gatehouse"


def test_lists_and_secrets_are_set_and_nobody_is_locked_out(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/settings/site")
    origins = page.locator("#public_site_url")
    origins.fill("https://files.example")
    origins.press("Enter")
    page.get_by_role("button", name=f"Remove: {site.origin}").click()
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="This may lock you out")
    expect(dialog).to_be_visible()
    complaints.take_refusal(409)
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    assert setting(page, "public_site_url") == [site.origin]
    page.get_by_role("button", name="Discard").click()
    page.goto("/admin/settings/mail.config")
    secret = page.locator("#mail_smtp_password")
    secret.fill("a secret of mail")
    page.get_by_role("button", name="Save").click()
    expect(toast(page)).to_contain_text("Saved.")
    expect(secret).to_have_value("")
    expect(secret).to_have_attribute("placeholder", re.compile("set"))
    assert "a secret" not in str(setting(page, "mail_smtp_password"))


def test_mails_are_watched_and_their_words_changed(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.flask("invitations", "create", "eve@example.com")
    open_as(page, site.ada, "/admin/mail")
    outbox = section(page, "Outbox")
    expect(outbox.locator("tbody tr")).to_contain_text("eve@example.com")
    expect(section(page, "Mail server")).to_contain_text("No server is set")
    outbox.get_by_label("Status").select_option("failed")
    expect(outbox).to_contain_text("Nothing matches")
    section(page, "Templates").get_by_role("link", name="Password reset", exact=True).click()
    preview = page.frame_locator("iframe")
    expect(preview.get_by_text("Reset your password")).to_be_visible()
    page.get_by_label("Subject").fill("Hello {{username}} {{nobody}}")
    expect(page.get_by_text("Unknown placeholders: {{nobody}}")).to_be_visible()
    page.get_by_label("Subject").fill("Hello {{username}}")
    stays(page, page.get_by_label("Subject"))
    # The preview leaves the back button alone.
    before = page.evaluate("history.length")
    for text in ("one", "two"):
        page.get_by_label("HTML").fill(f"<p>{text}</p>")
        expect(preview.get_by_text(text)).to_be_visible()
    assert page.evaluate("history.length") == before
    page.get_by_label("HTML").fill('<p>Go to {{reset_url}}</p><script src="/x.js"></script>')
    expect(preview.get_by_text("Go to")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(toast(page)).to_contain_text("Saved.")
    assert setting(page, "mail_template_password_reset_subject") == "Hello {{username}}"
    page.get_by_role("button", name="Back to default").click()
    page.get_by_role("dialog").get_by_role("button", name="Back to default").click()
    expect(preview.get_by_text("Reset your password")).to_be_visible()
    # The whole browser says so each time that the preview keeps a script from running.
    complaints.forgive("Blocked script execution")


def test_a_mail_that_waits_is_tried_again_and_the_mail_server_heard(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/mail")
    mail = {
        "id": "11111111-1111-4111-8111-111111111111",
        "template": "password_reset",
        "recipient": "<b>bob@example.com",
        "status": "queued",
        "is_file": False,
        "attempts": 2,
        "last_error": "550 <i>no",
        "created_at": "2026-03-02T09:00:00Z",
        "due_at": "2126-03-02T09:10:00Z",
        "finished_at": None,
    }
    data = {"items": [mail], "total": 1, "total_is_exact": True, "limit": 20, "offset": 0}
    answered(page, "**/mail/outbox?*", 200, "success", data)
    answered(page, "**/mail/outbox/*/retry", 200, "success", mail)
    page.reload()
    row = page.locator("#outbox tbody tr")
    expect(row).to_contain_text("<b>bob@example.com")
    expect(row).to_contain_text("550 <i>no")
    with page.expect_request("**/mail/outbox/*/retry"):
        row.get_by_role("button", name="Send now").click()
    expect(toast(page)).to_contain_text("The e-mail is being sent now.")
    # What the mail server says to a test mail is shown.
    site.configure(mail_smtp_host="localhost", mail_smtp_port=1, mail_from_address="a@b.example")
    server = section(page, "Mail server")

    def is_known() -> bool:
        page.reload()
        is_drawn(page)
        return "No server is set" not in server.inner_text()

    eventually(is_known, "the server")
    page.get_by_role("button", name="Send test e-mail").first.click()
    expect(page.get_by_role("alert").first).to_contain_text("The mail server refused the e-mail")
    complaints.take_refusal(503)


def test_a_provider_is_set_up_tried_and_deleted(
    page: Page, site: Site, loopback: FakeProvider, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/external-auth")
    expect(page.get_by_text("No providers")).to_be_visible()
    page.get_by_role("link", name="Add a provider").last.click()
    page.get_by_role("button", name="OpenID Connect").click()
    # What has to be entered at the provider first is there from the beginning.
    redirect = section(page, "Redirect address")
    address = f"{site.origin}/api/v1/auth/external-auth/callback"
    expect(redirect.get_by_role("code")).to_have_text(address)
    expect(redirect.get_by_role("button", name="Copy")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("Local login")
    page.get_by_label("Issuer").fill(f"{loopback.issuer}/nothing")
    page.get_by_label("Client ID").fill(CLIENT_ID)
    page.get_by_label("Client secret").fill(CLIENT_SECRET)
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("discovery failed")
    complaints.take_refusal(400)
    # It is offered to people once it was tried as it is, and not before.
    enabled = page.get_by_label("Enabled")
    expect(enabled).to_be_disabled()
    page.get_by_label("Issuer").fill(loopback.issuer)
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text("The provider can be used.").first).to_be_visible()
    expect(enabled).to_be_checked()
    page.get_by_label("Client ID").fill(f"{CLIENT_ID} ")
    expect(enabled).to_be_disabled()
    expect(enabled).not_to_be_checked()
    # The answer to a test of what was filled in before changes nothing.
    held: list[Route] = []
    page.route("**/providers/test", lambda route: held.append(route))
    test = page.get_by_role("button", name="Test", exact=True)
    with page.expect_request("**/providers/test"):
        test.click()
    page.get_by_label("Client ID").fill(CLIENT_ID)
    with page.expect_response("**/providers/test"):
        held[0].continue_()
    expect(test).not_to_have_attribute("aria-disabled", "true")
    expect(enabled).to_be_disabled()
    expect(page.locator(".tested")).to_be_empty()
    page.unroute("**/providers/test")
    page.get_by_role("button", name="Add provider").click()
    expect(redirect.get_by_role("code")).to_have_text(address)
    expect(page.get_by_text("It is switched off")).to_be_visible()
    # What is typed and not saved stays when it is switched on.
    page.get_by_label("Name", exact=True).fill("Our login")
    page.get_by_role("button", name="Test", exact=True).click()
    page.get_by_role("button", name="Switch on").click()
    expect(toast(page)).to_contain_text("The provider is switched on.")
    expect(enabled).to_be_checked()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Our login")
    page.get_by_label("Name", exact=True).fill("Local login")
    page.get_by_label("Create accounts").check()
    with page.expect_response(lambda answer: answer.request.method == "PATCH"):
        page.get_by_role("button", name="Save").click()
    expect(toast(page)).to_contain_text("Saved.")
    expect(page.get_by_label("Client secret")).to_have_value("")
    listed = told(page, "/admin/external-auth/providers")["items"]
    assert isinstance(listed, list)
    kept = ("enabled", "auto_provision_enabled", "client_secret_configured")
    assert [listed[0][name] for name in kept] == [True, True, True]
    page.get_by_role("button", name="Delete provider").click()
    page.get_by_role("dialog").get_by_label("To continue, type Local login").fill("Local login")
    page.get_by_role("dialog").get_by_role("button", name="Delete provider").click()
    expect(page.get_by_text("No providers")).to_be_visible()


def test_the_redirect_address_follows_the_key(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/external-auth")
    kinds: Any = told(page, "/admin/external-auth/provider-kinds")
    for kind in kinds:
        kind["redirect_uri"] = "https://files.example/{key}/callback"
    answered(page, "**/provider-kinds", 200, "success", kinds)
    page.goto("/admin/external-auth/new")
    page.get_by_role("button", name="GitHub").click()
    redirect = section(page, "Redirect address")
    expect(redirect).to_contain_text("The key is part of it")
    expect(redirect.get_by_role("button", name="Copy")).to_have_count(0)
    page.get_by_label("Key").fill("Hub")
    expect(redirect.get_by_role("code")).to_have_text("https://files.example/hub/callback")
    expect(redirect.get_by_role("button", name="Copy")).to_be_visible()


def test_policy_groups_are_ordered_assigned_and_deleted(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/policy-groups")
    default = page.get_by_role("region", name=re.compile("Default"))
    expect(default).to_contain_text("1 account, 0 teams")
    ask(page, "/admin/policies", {"name": "Second place"})
    page.reload()
    page.get_by_role("button", name="New group").click()
    dialog = page.get_by_role("dialog", name="New group")
    # A group that is filled in and not saved is not lost by loading the page again.
    add = dialog.get_by_role("button", name="Add", exact=True)
    add.click()
    with page.expect_event("dialog") as asked:
        page.evaluate("setTimeout(() => window.location.reload())")
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    dialog.get_by_label("Name").fill("Large files")
    add.click()
    dialog.get_by_label(re.compile("To MB")).first.fill("5")
    dialog.get_by_role("button", name=re.compile("Down")).first.click()
    assert barriers(page) == []
    dialog.get_by_role("button", name="Save").click()
    group = section(page, "Large files")
    expect(group.get_by_role("listitem")).to_have_text([re.compile("any size"), re.compile("5 MB")])
    default.get_by_role("button", name="Move assignments").click()
    page.get_by_role("dialog").get_by_role("button", name="Move assignments").click()
    expect(group).to_contain_text("1 account, 0 teams")
    group.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    complaints.take_refusal(400)
    group.get_by_role("button", name="Make default").click()
    expect(group).to_contain_text("Default")


@pytest.fixture
def many(site: Site) -> int:
    """More groups and providers than the service answers at once."""
    now = site.rt.clock.now()
    groups = [
        {"name": f"Group {number}", "description": "", "is_enabled": True, "is_default": False}
        for number in range(101)
    ]
    with site.rt.transaction() as session:
        rows = [one | {"created_at": now, "updated_at": now} for one in groups]
        session.execute(sa.insert(StoragePolicyGroup), rows)
    for number in range(101):
        add_provider(site.rt, kind="github", key=f"key{number}", display_name=f"Name {number}")
    return 101


def shown_on_every_page(page: Page, names: Locator) -> set[str]:
    """Turn the pages of a list to the last; return the names they show."""
    found: set[str] = set()
    pager = page.get_by_role("navigation").filter(has=page.get_by_role("button", name="Next"))
    while True:
        expect(page.locator("#content:not([aria-busy])")).to_be_visible()
        found.update(names.all_inner_texts())
        next_page = pager.get_by_role("button", name="Next")
        if next_page.is_disabled():
            return found
        range_shown = pager.locator("span").first.inner_text()
        next_page.click()
        expect(pager.locator("span").first).not_to_have_text(range_shown)


def test_lists_longer_than_the_service_answers_at_once_end_nowhere(
    page: Page, site: Site, many: int
) -> None:
    open_as(page, site.ada, "/admin/external-auth")
    names = shown_on_every_page(page, page.locator(".cards h2"))
    assert names == {f"Name {number}" for number in range(many)}
    for number in (0, many - 1):
        page.goto(f"/admin/external-auth/key{number}")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Name {number}")
    page.goto("/admin/policy-groups")
    names = shown_on_every_page(page, page.locator("#content h2"))
    assert {f"Group {number}" for number in range(many)} < names
    page.goto(f"/admin/users/{site.ada.id}")
    is_drawn(page)
    choices = page.get_by_label("Policy group").locator("option").all_inner_texts()
    assert names <= set(choices)


def test_an_estimate_is_told_as_one(page: Page, site: Site) -> None:
    def in_millions(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        if "stats" in body["data"]:
            many = {"total_users": 1_003_117, "live_sessions": 9_876}
            body["data"]["stats"] |= many
            body["data"]["estimated_stats"] = ["total_users"]
        else:
            body["data"] |= {"total": 4_812_345, "total_is_exact": False}
        route.fulfill(response=answer, json=body)

    page.route(re.compile(r"/v1/admin/(overview|audit-logs)(\?|$)"), in_millions)
    open_as(page, site.ada, "/admin")
    tiles = page.locator(".tile-number")
    expect(tiles.nth(0)).to_have_text("about 1.01M")
    expect(tiles.nth(1)).to_have_text("9,876")
    page.get_by_role("link", name="Audit log").first.click()
    expect(page.get_by_text(re.compile(r"of about 4\.82M$"))).to_be_visible()
    expect(page.get_by_role("button", name="Next page")).to_be_enabled()
    page.get_by_role("button", name="Export").click()
    # Nothing stands beyond the hundred thousandth.
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The filters match about 4.82M entries.")
    expect(dialog.get_by_role("button", name="CSV")).to_be_visible()


def test_too_many_entries_are_not_offered_however_few_are_expected(page: Page, site: Site) -> None:
    def more_than_expected(route: Route) -> None:
        answer = route.fetch(url=route.request.url.replace("offset=100000", "offset=0"))
        body = answer.json()
        body["data"] |= {"total": 25_000, "total_is_exact": False}
        route.fulfill(response=answer, json=body)

    page.route(re.compile(r"/v1/admin/audit-logs(\?|$)"), more_than_expected)
    open_as(page, site.ada, "/admin/audit")
    page.get_by_role("button", name="Export").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(
        "The filters match about 101K entries, and at most 100,000 can be exported."
    )
    expect(dialog.get_by_role("button", name="CSV")).to_have_count(0)
