"""Two administrators change the same thing at once: nobody's work is lost or undone unseen."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.external import add_provider
from tests.support.pages import Site, barriers, fill, is_drawn, open_as, opened, sign_in_by_api

pytestmark = needs_chromium

MEANWHILE = "Somebody else has made changes in the meantime."
GONE = "This no longer exists."
ONE_ACCOUNT = "1 account, 0 teams"


@pytest.fixture
def ada(page: Page) -> Iterator[Page]:
    """The browser of the first administrator."""
    yield page
    expect(page.locator("body")).not_to_contain_text("undefined")


@pytest.fixture
def bea(chromium: Browser, site: Site) -> Iterator[Page]:
    """The browser of another administrator, who sees no refusals."""
    with opened(chromium, site.origin, Complaints()) as hers:
        sign_in_by_api(hers, site.add("bea", role="admin"))
        yield hers


def call(page: Page, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Do something as the page of a console does it."""
    cookies = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    answer = page.context.request.fetch(
        f"/api/v1{path}",
        method=method,
        data=body,
        headers={"X-CSRF-Token": cookies["service_csrf"]},
    )
    assert answer.ok, answer.text()
    return answer.json()["data"]


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def press(where: Page | Locator, name: str) -> None:
    where.get_by_role("button", name=name, exact=True).click()


def is_saved(page: Page) -> None:
    expect(page.locator(".toast")).to_contain_text("Saved.")


def says(control: Locator, words: str) -> None:
    """Expect a control that says what is wrong with it."""
    expect(control).to_have_attribute("aria-invalid", "true")
    expect(control).to_have_accessible_description(re.compile(re.escape(words)))


# --- settings -------------------------------------------------------------------------------------


def test_only_what_was_changed_is_saved_and_nothing_undone_unseen(
    ada: Page, bea: Page, site: Site, complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/settings/site")
    ada.locator("#branding_title").fill("Files of Ada")
    bea.goto("/admin/settings/site")
    bea.locator("#branding_title").fill("Files of Bea")
    bea.locator("#branding_description").fill("For all of us")
    press(bea, "Save")
    is_saved(bea)
    press(ada, "Save")
    expect(ada.get_by_text(MEANWHILE)).to_be_visible()
    complaints.take_refusal(409)
    expect(ada.locator("#branding_title")).to_have_value("Files of Ada")
    expect(ada.get_by_text("1 change is not saved")).to_be_visible()
    assert call(bea, "get", "/admin/config/branding_title")["value"] == "Files of Bea"
    press(ada, "Save")
    is_saved(ada)
    description = ada.locator("#branding_description")
    expect(description).to_have_value("For all of us")
    expect(ada.locator("#branding_title")).to_have_value("Files of Ada")
    expect(ada.locator(".setting", has=description)).to_contain_text("bea")
    expect(ada.get_by_role("button", name="Save")).to_be_hidden()
    assert call(bea, "get", "/admin/config/branding_title")["value"] == "Files of Ada"
    assert call(bea, "get", "/admin/config/branding_description")["value"] == "For all of us"


def test_a_draft_that_does_not_fit_any_more_is_kept(ada: Page, bea: Page, site: Site) -> None:
    open_as(ada, site.ada, "/admin/settings/user.registration_and_login")
    passkeys = ada.locator("#auth_passkey_login_enabled")
    passwords = ada.locator("#auth_password_login_enabled")
    passkeys.click()
    ada.get_by_role("link", name="Site", exact=True).click()
    ada.locator("#branding_title").fill("Files of Ada")
    site.configure(auth_password_login_enabled=False)
    press(ada, "Save")
    says(passwords, "no way to sign in would be left")
    expect(passwords).not_to_be_checked()
    expect(passkeys).not_to_be_checked()
    expect(ada.get_by_text("2 changes are not saved")).to_be_visible()
    call(bea, "patch", "/admin/config", {"unset": ["auth_password_login_enabled"], "values": {}})
    press(ada, "Save")
    is_saved(ada)
    assert call(bea, "get", "/admin/config/auth_passkey_login_enabled")["value"] == "false"
    assert call(bea, "get", "/admin/config/branding_title")["value"] == "Files of Ada"


def test_a_secret_that_is_not_saved_yet_stays_where_it_was_typed(
    ada: Page, bea: Page, site: Site
) -> None:
    open_as(ada, site.ada, "/admin/settings/mail.config")
    password = ada.locator("#mail_smtp_password")
    password.fill("only Ada knows")
    ada.locator("#mail_from_address").fill("nobody")
    press(ada, "Save")
    says(ada.locator("#mail_from_address"), "must be an e-mail address")
    expect(password).to_have_value("only Ada knows")


def test_a_setting_that_is_the_default_again_stays_so(ada: Page, bea: Page, site: Site) -> None:
    site.configure(branding_title="Files")
    open_as(ada, site.ada, "/admin/settings/site")
    title = ada.locator("#branding_title")
    expect(title).to_have_value("Files")
    call(bea, "patch", "/admin/config", {"unset": ["branding_title"], "values": {}})
    ada.locator("#branding_description").fill("For all of us")
    press(ada, "Save")
    is_saved(ada)
    expect(title).to_have_value("Gatehouse")
    assert call(bea, "get", "/admin/config/branding_title")["is_set"] is False


def test_the_parts_of_a_mail_are_changed_by_two(ada: Page, bea: Page, site: Site) -> None:
    open_as(ada, site.ada, "/admin/mail/password_reset")
    ada.get_by_label("HTML").fill("<p>Go to {{reset_url}}</p>")
    bea.goto("/admin/mail/password_reset")
    bea.get_by_label("Subject").fill("Hello {{username}}")
    press(bea, "Save")
    is_saved(bea)
    press(ada, "Save")
    is_saved(ada)
    expect(ada.get_by_label("Subject")).to_have_value("Hello {{username}}")
    subject = call(bea, "get", "/admin/config/mail_template_password_reset_subject")
    assert subject["value"] == "Hello {{username}}"
    html = call(bea, "get", "/admin/config/mail_template_password_reset_html")
    assert html["value"] == "<p>Go to {{reset_url}}</p>"


# --- policy groups --------------------------------------------------------------------------------


@pytest.fixture
def groups(bea: Page) -> dict[str, int]:
    """The ids of two groups by name; bea is assigned to the large one."""
    policies = [
        call(bea, "post", "/admin/policies", {"name": name})["id"] for name in ("North", "South")
    ]
    items = [{"policy_id": policies[0], "priority": 1}]
    made = {
        name: call(bea, "post", "/admin/policy-groups", {"name": name, "items": items})["id"]
        for name in ("Large files", "Small files")
    }
    [me] = call(bea, "get", "/admin/users?keyword=bea")["items"]
    group = {"policy_group_id": made["Large files"]}
    call(bea, "patch", f"/admin/users/{me['id']}", group)
    return made


def edit_group(page: Page, name: str) -> Locator:
    press(section(page, name), f"Edit: {name}")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_have_count(1)
    return dialog


def test_a_group_that_was_renamed_meanwhile_gets_the_other_changes_too(
    ada: Page, bea: Page, site: Site, groups: dict[str, int], complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/policy-groups")
    bea.goto("/admin/policy-groups")
    dialog = edit_group(ada, "Large files")
    dialog.get_by_label("Description").fill("For films")
    dialog.get_by_label("To MB: North").fill("5")
    hers = edit_group(bea, "Large files")
    hers.get_by_label("Name").fill("Huge files")
    press(hers, "Save")
    is_saved(bea)
    press(dialog, "Save")
    expect(dialog.get_by_role("alert")).to_contain_text(MEANWHILE)
    complaints.take_refusal(409)
    expect(dialog.get_by_label("Name")).to_have_value("Huge files")
    expect(dialog.get_by_label("Description")).to_have_value("For films")
    expect(dialog.get_by_label("To MB: North")).to_have_value("5")
    press(dialog, "Save")
    is_saved(ada)
    expect(section(ada, "Huge files")).to_contain_text("For films")
    expect(section(ada, "Huge files").get_by_role("listitem")).to_contain_text("5 MB")
    group = call(bea, "get", f"/admin/policy-groups/{groups['Large files']}")
    assert (group["name"], group["description"]) == ("Huge files", "For films")


def test_two_names_and_two_orders_of_a_group_are_both_seen(
    ada: Page, bea: Page, site: Site, groups: dict[str, int], complaints: Complaints
) -> None:
    id = groups["Large files"]
    [item] = call(bea, "get", f"/admin/policy-groups/{id}")["items"]
    open_as(ada, site.ada, "/admin/policy-groups")
    dialog = edit_group(ada, "Large files")
    dialog.get_by_label("Name").fill("Films")
    dialog.get_by_label("To MB: North").fill("5")
    limited = {"policy_id": item["policy_id"], "priority": 1, "min_file_size": 1_000_000}
    call(bea, "patch", f"/admin/policy-groups/{id}", {"name": "Huge files", "items": [limited]})
    press(dialog, "Save")
    says(dialog.get_by_label("Name"), "“Huge files”")
    complaints.take_refusal(409)
    assert barriers(ada) == []
    expect(dialog.get_by_label("Name")).to_have_value("Films")
    expect(dialog.get_by_label("To MB: North")).to_have_value("5")
    expect(dialog).to_contain_text("Somebody else has set these policies in the meantime: North")
    press(dialog, "Save")
    is_saved(ada)
    expect(section(ada, "Films").get_by_role("listitem")).to_contain_text("5 MB")
    group = call(bea, "get", f"/admin/policy-groups/{id}")
    assert (group["name"], group["items"][0]["max_file_size"]) == ("Films", 5_000_000)
    assert group["items"][0]["min_file_size"] == 0


def test_a_group_that_was_deleted_meanwhile_takes_nothing_typed_with_it(
    ada: Page, bea: Page, site: Site, groups: dict[str, int], complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/policy-groups")
    dialog = edit_group(ada, "Small files")
    dialog.get_by_label("Description").fill("For notes")
    call(bea, "delete", f"/admin/policy-groups/{groups['Small files']}")
    press(dialog, "Save")
    expect(dialog.get_by_role("alert")).to_contain_text(GONE)
    complaints.take_refusal(404)
    expect(dialog.get_by_label("Description")).to_have_value("For notes")
    press(dialog, "Cancel")
    expect(section(ada, "Small files")).to_have_count(0)
    expect(section(ada, "Large files")).to_be_visible()


def test_assignments_cannot_be_moved_to_a_group_that_is_gone(
    ada: Page, bea: Page, site: Site, groups: dict[str, int], complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/policy-groups")
    large = section(ada, "Large files")
    press(large, "Move assignments: Large files")
    dialog = ada.get_by_role("dialog")
    dialog.get_by_label("To").select_option("Small files")
    call(bea, "delete", f"/admin/policy-groups/{groups['Small files']}")
    press(dialog, "Move assignments")
    expect(ada.locator("#problem")).to_contain_text("It no longer exists")
    complaints.forgive("status of 404")
    expect(section(ada, "Small files")).to_have_count(0)
    expect(large).to_contain_text(ONE_ACCOUNT)


def test_assignments_that_were_moved_meanwhile_are_counted_anew(
    ada: Page, bea: Page, site: Site, groups: dict[str, int], complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/policy-groups")
    large, small = section(ada, "Large files"), section(ada, "Small files")
    expect(small).to_contain_text("0 accounts, 0 teams")
    target = {"target_group_id": groups["Small files"]}
    path = f"/admin/policy-groups/{groups['Large files']}/migrate-assignments"
    call(bea, "post", path, target)
    press(small, "Delete: Small files")
    press(ada.get_by_role("dialog"), "Delete")
    expect(ada.locator("#problem")).to_contain_text("still assigned to 1 user")
    complaints.take_refusal(400)
    expect(small).to_contain_text(ONE_ACCOUNT)
    expect(large).to_contain_text("0 accounts, 0 teams")


# --- teams ----------------------------------------------------------------------------------------


@pytest.fixture
def team(bea: Page, site: Site) -> int:
    """A team of ada and bob."""
    site.add("bob")
    body = {"name": "Blue", "admin_identifier": "ada", "description": "Draws"}
    id: int = call(bea, "post", "/admin/teams", body)["id"]
    call(bea, "post", f"/admin/teams/{id}/members", {"identifier": "bob"})
    return id


def test_two_fields_of_a_team_are_changed_by_two(
    ada: Page, bea: Page, site: Site, team: int, complaints: Complaints
) -> None:
    open_as(ada, site.ada, f"/admin/teams/{team}")
    bea.goto(f"/admin/teams/{team}")
    fill(ada, name="Green", storage_quota="3")
    fill(bea, description="Draws and paints")
    press(section(bea, "Settings"), "Save")
    is_saved(bea)
    press(section(ada, "Settings"), "Save")
    expect(ada.locator("#problem")).to_contain_text(MEANWHILE)
    complaints.take_refusal(409)
    settings = section(ada, "Settings")
    expect(settings.get_by_label("Description")).to_have_value("Draws and paints")
    expect(settings.get_by_label("Name")).to_have_value("Green")
    expect(settings.get_by_label("Storage limit")).to_have_value("3")
    press(settings, "Save")
    is_saved(ada)
    expect(ada.locator("#problem")).to_be_hidden()
    shown = call(bea, "get", f"/admin/teams/{team}")
    assert (shown["name"], shown["description"]) == ("Green", "Draws and paints")
    assert shown["storage_quota"] == 3_000_000_000


def test_a_team_stays_in_the_policy_group_that_somebody_else_has_just_made(
    ada: Page,
    bea: Page,
    site: Site,
    team: int,
    groups: dict[str, int],
    complaints: Complaints,
) -> None:
    open_as(ada, site.ada, f"/admin/teams/{team}")
    fill(ada, name="Green")
    items = call(bea, "get", f"/admin/policy-groups/{groups['Large files']}")["items"]
    kept = ("policy_id", "priority", "min_file_size", "max_file_size")
    body = {"name": "Huge files", "items": [{key: item[key] for key in kept} for item in items]}
    group = groups["Huge files"] = call(bea, "post", "/admin/policy-groups", body)["id"]
    call(bea, "patch", f"/admin/teams/{team}", {"policy_group_id": group})
    settings = section(ada, "Settings")
    press(settings, "Save")
    expect(ada.locator("#problem")).to_contain_text(MEANWHILE)
    complaints.take_refusal(409)
    press(settings, "Save")
    is_saved(ada)
    shown = call(bea, "get", f"/admin/teams/{team}")
    assert (shown["name"], shown["policy_group_id"]) == ("Green", group)


def test_two_names_of_a_team_are_both_seen(
    ada: Page, bea: Page, site: Site, team: int, complaints: Complaints
) -> None:
    open_as(ada, site.ada, f"/admin/teams/{team}")
    settings = section(ada, "Settings")
    fill(ada, name="Green", storage_quota="3")
    change = {"name": "Red", "storage_quota": 5_000_000}
    call(bea, "patch", f"/admin/teams/{team}", change)
    press(settings, "Save")
    says(settings.get_by_label("Name"), "“Red”")
    says(settings.get_by_label("Storage limit"), "“5 MB”")
    complaints.take_refusal(409)
    assert barriers(ada) == []
    expect(ada.get_by_role("heading", level=1)).to_have_text("Red")
    expect(settings.get_by_label("Name")).to_have_value("Green")
    expect(settings.get_by_label("Storage limit")).to_have_value("3")
    press(settings, "Save")
    is_saved(ada)
    expect(ada.get_by_role("heading", level=1)).to_have_text("Green")
    assert call(bea, "get", f"/admin/teams/{team}")["storage_quota"] == 3_000_000_000


def test_a_team_that_was_archived_meanwhile_keeps_the_draft_until_it_is_restored(
    ada: Page, bea: Page, site: Site, team: int, complaints: Complaints
) -> None:
    open_as(ada, site.ada, f"/admin/teams/{team}")
    fill(ada, name="Green", description="Draws, paints and writes")
    call(bea, "patch", f"/admin/teams/{team}", {"name": "Red"})
    call(bea, "delete", f"/admin/teams/{team}")
    press(section(ada, "Settings"), "Save")
    expect(ada.locator("#problem")).to_contain_text(MEANWHILE)
    complaints.take_refusal(409)
    expect(ada.locator("#page-actions")).to_contain_text("Archived")
    press(ada, "Restore team")
    description = section(ada, "Settings").get_by_label("Description")
    expect(description).to_have_value("Draws, paints and writes")
    says(section(ada, "Settings").get_by_label("Name"), "“Red”")
    press(section(ada, "Settings"), "Save")
    is_saved(ada)
    shown = call(bea, "get", f"/admin/teams/{team}")
    assert shown["description"] == "Draws, paints and writes"


def test_nobody_is_added_to_a_team_that_was_archived_meanwhile(
    ada: Page, bea: Page, site: Site, team: int, complaints: Complaints
) -> None:
    site.add("eve")
    open_as(ada, site.ada, f"/admin/teams/{team}")
    press(ada, "Add a member")
    dialog = ada.get_by_role("dialog")
    who = dialog.get_by_label("Username or e-mail address")
    who.fill("eve")
    call(bea, "delete", f"/admin/teams/{team}")
    press(dialog, "Add a member")
    says(who, "The team is archived.")
    complaints.take_refusal(409)
    expect(who).to_have_value("eve")
    press(dialog, "Cancel")
    expect(ada.get_by_role("button", name="Restore team")).to_be_visible()
    expect(ada.get_by_role("button", name="Add a member")).to_have_count(0)
    assert call(bea, "get", f"/admin/teams/{team}/members")["total"] == 2


def test_a_member_who_was_removed_meanwhile_is_gone_from_the_list(
    ada: Page, bea: Page, site: Site, team: int, complaints: Complaints
) -> None:
    eve = site.add("eve")
    call(bea, "post", f"/admin/teams/{team}/members", {"identifier": "eve"})
    open_as(ada, site.ada, f"/admin/teams/{team}")
    members = section(ada, "Members")
    rows = members.locator("tbody tr")
    expect(rows).to_have_count(3)
    fill(ada, name="Green")
    [bob] = call(bea, "get", "/admin/users?keyword=bob")["items"]
    call(bea, "delete", f"/admin/teams/{team}/members/{bob['id']}")
    members.get_by_label("Role of bob").select_option("admin")
    expect(ada.locator("#problem")).to_contain_text("It no longer exists")
    complaints.take_refusal(404)
    expect(rows).to_have_count(2)
    call(bea, "delete", f"/admin/teams/{team}/members/{eve.id}")
    press(members, "Remove: eve")
    press(ada.get_by_role("dialog"), "Remove")
    expect(ada.locator("#problem")).to_contain_text("It no longer exists")
    complaints.take_refusal(404)
    expect(rows).to_have_count(1)
    expect(section(ada, "Settings").get_by_label("Name")).to_have_value("Green")


def test_the_last_owner_is_seen_to_be_the_last(
    ada: Page, bea: Page, site: Site, team: int, complaints: Complaints
) -> None:
    [bob] = call(bea, "get", "/admin/users?keyword=bob")["items"]
    path = f"/admin/teams/{team}/members/{bob['id']}"
    call(bea, "patch", path, {"role": "owner"})
    open_as(ada, site.ada, f"/admin/teams/{team}")
    expect(ada.get_by_label("Role of bob")).to_have_value("owner")
    call(bea, "patch", path, {"role": "member"})
    ada.get_by_label("Role of ada").select_option("member")
    expect(ada.locator("#problem")).to_contain_text("last owner")
    complaints.take_refusal(409)
    expect(ada.get_by_label("Role of bob")).to_have_value("member")
    expect(ada.get_by_label("Role of ada")).to_have_value("owner")


def test_a_team_is_archived_and_restored_by_two(
    ada: Page, bea: Page, site: Site, team: int, complaints: Complaints
) -> None:
    open_as(ada, site.ada, f"/admin/teams/{team}")
    expect(ada.get_by_role("button", name="Archive team")).to_be_visible()
    call(bea, "delete", f"/admin/teams/{team}")
    press(ada, "Archive team")
    press(ada.get_by_role("dialog"), "Archive team")
    expect(ada.get_by_role("button", name="Restore team")).to_be_visible()
    call(bea, "post", f"/admin/teams/{team}/restore")
    press(ada, "Restore team")
    expect(ada.locator("#problem")).to_be_visible()
    complaints.take_refusal(409)
    expect(section(ada, "Settings")).to_be_visible()


# --- providers ------------------------------------------------------------------------------------


@pytest.fixture
def corp(site: Site) -> int:
    """A provider in use."""
    return add_provider(site.rt).id


def test_a_provider_that_was_switched_off_meanwhile_stays_off(
    ada: Page, bea: Page, site: Site, corp: int, complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/external-auth/corp")
    bea.goto("/admin/external-auth/corp")
    fill(ada, display_name="Our company", client_secret="a secret of ada")
    bea.get_by_label("Enabled").uncheck()
    press(bea, "Save")
    is_saved(bea)
    press(ada, "Save")
    expect(ada.locator("#problem")).to_contain_text(MEANWHILE)
    complaints.take_refusal(409)
    expect(ada.get_by_label("Enabled")).not_to_be_checked()
    expect(ada.get_by_label("Name", exact=True)).to_have_value("Our company")
    expect(ada.get_by_label("Client secret")).to_have_value("a secret of ada")
    press(ada, "Save")
    is_saved(ada)
    expect(ada.locator("#problem")).to_be_hidden()
    shown = call(bea, "get", f"/admin/external-auth/providers/{corp}")
    assert (shown["display_name"], shown["enabled"]) == ("Our company", False)


def test_two_names_of_a_provider_are_both_seen(
    ada: Page, bea: Page, site: Site, corp: int, complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/external-auth/corp")
    ada.get_by_text("More settings").click()
    fill(ada, display_name="Our company", icon_url="/icons/ours.svg")
    change = {"display_name": "The company", "icon_url": "/icons/theirs.svg", "client_id": "new"}
    call(bea, "patch", f"/admin/external-auth/providers/{corp}", change)
    press(ada, "Save")
    says(ada.get_by_label("Name", exact=True), "“The company”")
    says(ada.locator("[name=icon_url]"), "“/icons/theirs.svg”")
    complaints.take_refusal(409)
    expect(ada.locator("[name=icon_url]")).to_be_visible()
    expect(ada.locator("[name=icon_url]")).to_have_value("/icons/ours.svg")
    expect(ada.get_by_label("Name", exact=True)).to_have_value("Our company")
    expect(ada.get_by_label("Client ID")).to_have_value("new")
    press(ada, "Save")
    is_saved(ada)
    shown = call(bea, "get", f"/admin/external-auth/providers/{corp}")
    assert (shown["display_name"], shown["icon_url"]) == ("Our company", "/icons/ours.svg")
    assert shown["client_id"] == "new"


def test_a_provider_that_was_deleted_meanwhile_takes_nothing_typed_with_it(
    ada: Page, bea: Page, site: Site, corp: int, complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/external-auth/corp")
    fill(ada, display_name="Our company")
    call(bea, "delete", f"/admin/external-auth/providers/{corp}")
    press(ada, "Save")
    expect(ada.locator("#problem")).to_contain_text(GONE)
    complaints.take_refusal(404)
    expect(ada.get_by_label("Name", exact=True)).to_have_value("Our company")
    press(ada, "Test")
    expect(ada.locator("#problem")).to_contain_text(GONE)
    complaints.take_refusal(404)
    press(ada, "Delete provider")
    dialog = ada.get_by_role("dialog")
    dialog.get_by_label("To continue, type Corporate").fill("Corporate")
    press(dialog, "Delete provider")
    expect(ada.locator("#problem")).to_contain_text(GONE)
    complaints.take_refusal(404)


def test_a_key_that_was_taken_meanwhile_is_said_at_its_field(
    ada: Page, bea: Page, site: Site, complaints: Complaints
) -> None:
    open_as(ada, site.ada, "/admin/external-auth/new")
    press(ada, "GitHub")
    fill(ada, display_name="Code", key="code", client_id="ours", client_secret="a secret of ada")
    provider = {"provider_kind": "github", "key": "code", "display_name": "Bea's", "client_id": "x"}
    call(bea, "post", "/admin/external-auth/providers", provider | {"client_secret": "of bea"})
    press(ada, "Add provider")
    says(ada.get_by_label("Key"), "already a provider")
    complaints.take_refusal(409)
    expect(ada.get_by_label("Client secret")).to_have_value("a secret of ada")
    fill(ada, key="code-2")
    press(ada, "Add provider")
    is_saved(ada)
    is_drawn(ada)
    names = [one["key"] for one in call(bea, "get", "/admin/external-auth/providers")["items"]]
    assert sorted(names) == ["code", "code-2"]
