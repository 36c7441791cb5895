"""Administrators' pages about people: what is done there is what the API then shows."""

import re

from playwright.sync_api import Locator, Page, Route, expect

from tests.support import factories
from tests.support.browser import Complaints, needs_chromium
from tests.support.launcher import eventually
from tests.support.pages import Site, barriers, fill, is_drawn, open_as, told

pytestmark = needs_chromium

MARKUP = "<img src=x onerror=alert(1)>"


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def toast(page: Page) -> Locator:
    return page.locator(".toast")


def test_accounts_are_found_sorted_and_changed_together(page: Page, site: Site) -> None:
    for number in range(60):
        site.add(f"user{number:02}", role="admin" if number == 7 else "user")
    open_as(page, site.ada, "/admin/users")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_text("51\u201361 of 61")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("1\u201350 of 61")).to_be_visible()
    page.get_by_role("button", name="Name").click()
    expect(rows.first).to_contain_text("ada")
    page.get_by_label("Search").fill("USER0")
    expect(rows).to_have_count(10)
    page.get_by_label("Role").select_option("admin")
    expect(rows).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    expect(page.get_by_label("Search")).to_have_value("USER0")
    page.get_by_label("Role").select_option("user")
    expect(rows).to_have_count(9)
    page.get_by_label("Select all on this page").check()
    bar = page.get_by_role("group", name="Change the selected accounts")
    expect(bar).to_contain_text("9 selected")
    page.get_by_label("Select user00").uncheck()
    bar.get_by_role("button", name="Apply").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(toast(page)).to_contain_text("8 accounts have been changed.")
    expect(rows.filter(has_text="disabled")).to_have_count(8)
    expect(bar).to_be_hidden()
    # What cannot be changed together is said.
    page.get_by_label("Search").fill("ada")
    page.get_by_label("Role").select_option("admin")
    expect(rows).to_have_count(1)
    page.get_by_label("Search").fill("")
    expect(rows).to_have_count(2)
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    dialog = page.get_by_role("dialog", name="1 account was not changed")
    expect(dialog).to_contain_text("You cannot disable yourself.")
    page.keyboard.press("Escape")
    expect(rows.filter(has_text="user07")).to_contain_text("disabled")


def test_an_account_is_made_and_its_password_shown_once(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/users")
    page.get_by_role("button", name="New account").click()
    dialog = page.get_by_role("dialog", name="New account")
    # An address that no field can judge.
    fill(page, username="bob", email="bob@\u200b.de")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("mail")
    expect(dialog.locator("[aria-invalid=true]")).to_have_count(0)
    complaints.take_refusal(400)
    dialog.get_by_label("Username").fill("ada")
    dialog.get_by_label("E-mail address").fill("bob@example.com")
    dialog.get_by_role("button", name="Create account").click()
    expect(dialog.get_by_label("Username")).to_have_accessible_description("This name is taken.")
    complaints.take_refusal(400)
    assert barriers(page) == []
    dialog.get_by_label("Username").fill("bob")
    # What is typed is not lost by loading the page again, and nothing asks once it is saved.
    with page.expect_event("dialog") as asked:
        page.evaluate("setTimeout(() => window.location.reload())")
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    dialog.get_by_role("button", name="Create account").click()
    secret = page.get_by_role("dialog", name="Password")
    password = secret.locator("code").inner_text()
    secret.get_by_role("button", name="I have kept a copy").click()
    page.wait_for_url(re.compile(r"/admin/users/\d+$"))
    expect(page.get_by_role("heading", name="bob", level=1)).to_be_visible()
    assert site.post("/auth/login", {"identifier": "bob", "password": password})["status"] == (
        "password_change_required"
    )


def test_one_account_is_changed_control_by_control(page: Page, site: Site) -> None:
    bob = site.add("bob", verified=False)
    site.post("/auth/login", {"identifier": "bob", "password": bob.password})
    open_as(page, site.ada, f"/admin/users/{bob.id}")
    # Two changes at once are both made, the focus stays, and who is disabled has no sessions.
    sessions = section(page, "Sessions")
    expect(sessions.locator("tbody tr")).to_have_count(1)
    page.evaluate(
        "() => { for (const name of ['enabled', 'must_change_password'])"
        " document.getElementById(name).click(); }"
    )
    changes = "admin_update_user"
    eventually(lambda: len(factories.audit_rows(site.rt, changes)) == 2, "both changes")
    expect(page.locator("#enabled")).not_to_be_checked()
    expect(page.locator("#must_change_password")).to_be_checked()
    expect(page.locator("#problem")).to_be_hidden()
    expect(sessions.get_by_role("row")).to_have_count(0)
    for switch in (page.locator("#enabled"), page.locator("#must_change_password")):
        was_on = switch.is_checked()
        switch.focus()
        page.keyboard.press("Space")
        expect(switch).to_be_checked(checked=not was_on)
        expect(switch).to_be_focused()
    # A key that is down on one switch while another has just been saved still counts.
    held: list[Route] = []
    page.route(f"**/admin/users/{bob.id}", lambda route: held.append(route), times=1)
    with page.expect_request(f"**/admin/users/{bob.id}"):
        page.locator("#enabled").click()
    was_on = page.locator("#must_change_password").is_checked()
    page.locator("#must_change_password").focus()
    page.keyboard.down("Space")
    with page.expect_request(lambda request: "/audit-logs" in request.url):
        held[0].continue_()
    page.keyboard.up("Space")
    expect(page.locator("#must_change_password")).to_be_checked(checked=not was_on)
    for switch in ("#enabled", "#must_change_password"):
        page.locator(switch).click()
    eventually(lambda: len(factories.audit_rows(site.rt, changes)) == 8, "all changes")
    # What is typed while a switch is saved stays.
    access = section(page, "Access")

    def type_meanwhile(route: Route) -> None:
        access.get_by_label("Storage limit").fill("2.5")
        route.continue_()

    page.route(f"**/admin/users/{bob.id}", type_meanwhile, times=1)
    confirmed = access.get_by_role("switch", name="Address is confirmed")
    confirmed.click()
    expect(confirmed).to_have_count(0)
    expect(access.get_by_label("Storage limit")).to_have_value("2.5")
    access.get_by_role("button", name="Save limit").click()
    expect(toast(page)).to_contain_text("Saved.")
    access.get_by_label("Role").select_option("admin")
    page.get_by_role("dialog").get_by_role("button", name="Change role").click()
    expect(section(page, "Account")).to_contain_text("Administrator")
    access.get_by_label("Role").select_option("user")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(access.get_by_label("Role")).to_have_value("admin")
    shown = told(page, f"/admin/users/{bob.id}")
    assert (shown["storage_quota"], shown["role"], shown["email_verified"]) == (
        2_500_000_000,
        "admin",
        True,
    )
    expect(sessions).to_contain_text("Not signed in anywhere.")
    site.post("/auth/login", {"identifier": "bob", "password": bob.password})
    page.reload()
    expect(sessions.locator("tbody tr")).to_have_count(1)
    sessions.get_by_role("button", name="Sign out everywhere").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out everywhere").click()
    expect(sessions).to_contain_text("Not signed in anywhere.")
    page.get_by_role("button", name="Change the address").click()
    fill(page, email="robert@example.com")
    page.keyboard.press("Enter")
    expect(section(page, "Account")).to_contain_text("robert@example.com")
    factories.change_user(site.rt, bob, email_verified_at=None)
    page.get_by_role("button", name="Set a password").click()
    fill(page, password="a password for bob")
    page.keyboard.press("Enter")
    expect(access.get_by_role("switch", name="Has to choose a new password")).to_be_checked()
    expect(confirmed).not_to_be_checked()
    site.post("/auth/login", {"identifier": "bob", "password": "a password for bob"})
    access.get_by_role("switch", name="Enabled").click()
    expect(page.locator("#page-actions")).to_contain_text("disabled")
    expect(section(page, "What happened")).to_contain_text("ada changed the account")


def test_what_was_done_elsewhere_first_is_shown_until_the_account_is_deleted(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob")
    # The own account is administered elsewhere.
    open_as(page, site.ada, f"/admin/users/{site.ada.id}")
    expect(page.get_by_role("link", name="Open your account")).to_be_visible()
    expect(page.get_by_role("button", name="Delete account")).to_have_count(0)
    expect(section(page, "Access").get_by_label("Role")).to_have_count(0)
    page.goto(f"/admin/users/{bob.id}")
    access = section(page, "Access")
    expect(access).to_be_visible()
    site.flask("users", "set-quota", "bob", "1000000000")
    access.get_by_role("switch", name="Has to choose a new password").click()
    expect(page.get_by_role("alert").first).to_contain_text("Somebody else has changed the account")
    complaints.take_refusal(409)
    expect(access.get_by_label("Storage limit")).to_have_value("1")
    expect(access.get_by_role("switch", name="Has to choose a new password")).not_to_be_checked()
    page.reload()
    is_drawn(page)
    page.get_by_role("button", name="Delete account").click()
    field = page.get_by_role("dialog").get_by_label("To continue, type bob")
    field.fill("bobby")
    field.press("Enter")
    expect(field).to_have_accessible_description("The name does not match.")
    expect(field).to_be_focused()
    field.fill("bob")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Escape")
    # Somebody whose role is taken away meanwhile is told, and nothing happens.
    site.flask("users", "set-role", "bob", "admin")
    site.flask("users", "set-role", "ada", "user")
    access.get_by_role("switch", name="Has to choose a new password").click()
    expect(page.get_by_role("alert").first).to_contain_text("Only administrators may do this.")
    complaints.forgive()
    site.flask("users", "set-role", "ada", "admin")
    site.flask("users", "set-role", "bob", "user")
    page.reload()
    is_drawn(page)
    page.get_by_role("button", name="Delete account").click()
    field.fill("bob")
    page.get_by_role("dialog").get_by_role("button", name="Delete account").click()
    page.wait_for_url("**/admin/users")
    expect(page.get_by_role("link", name="bob")).to_have_count(0)
    complaints.forgive()


def test_people_are_invited_and_invitations_withdrawn(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/users/invitations")
    expect(page.get_by_text("Nobody is invited")).to_be_visible()
    page.get_by_role("button", name="Invite somebody").last.click()
    days = page.get_by_role("dialog").locator("[name=days]")
    expect(days).to_have_accessible_description("Left empty: 3 days, as the settings say.")
    fill(page, email="eve@example.com", days="99999")
    page.keyboard.press("Enter")
    wrong = re.compile("^Enter a whole number of days, from 1 to 365")
    expect(days).to_have_accessible_description(wrong)
    fill(page, days="7")
    page.keyboard.press("Enter")
    link = page.get_by_role("dialog", name="Invitation link")
    assert "/invite/" in link.locator("code").inner_text()
    link.get_by_role("button", name="I have kept a copy").click()
    rows = page.locator("tbody tr")
    expect(rows).to_contain_text("waiting")
    expect(rows.get_by_role("link", name="ada", exact=True)).to_be_visible()
    rows.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("alert").first).to_contain_text("Too many attempts.")
    complaints.take_refusal(429)
    page.get_by_label("Status").select_option("pending")
    rows.get_by_role("button", name="Withdraw").click()
    page.get_by_role("dialog").get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    # Whoever looks at the accounts invites somebody there.
    page.get_by_role("link", name="Users").click()
    page.get_by_role("button", name="Invite", exact=True).click()
    fill(page, email="bob@example.com")
    page.keyboard.press("Enter")
    link.get_by_role("button", name="I have kept a copy").click()
    expect(page.get_by_role("heading", name="Users", level=1)).to_be_visible()
    assert told(page, "/admin/users/invitations?status=pending")["total"] == 1


def test_a_team_lives_and_ends(page: Page, site: Site, complaints: Complaints) -> None:
    site.add("bob")
    open_as(page, site.ada, "/admin/teams")
    page.get_by_role("button", name="New team").last.click()
    dialog = page.get_by_role("dialog")
    fill(page, name=MARKUP, owner="nobody")
    dialog.get_by_role("button", name="Create team").click()
    owner = dialog.get_by_label("Owner")
    expect(owner).to_have_accessible_description(re.compile("There is no such account."))
    complaints.take_refusal(404)
    owner.fill("ada")
    owner.press("Enter")
    expect(page.get_by_role("heading", name=MARKUP, level=1)).to_be_visible()
    members = section(page, "Members")
    members.get_by_role("button", name="Add a member").click()
    page.get_by_role("dialog").get_by_label("Username or e-mail address").fill("bob")
    page.keyboard.press("Enter")
    expect(members.locator("tbody tr")).to_have_count(2)
    members.get_by_label("Role of bob").select_option("admin")
    expect(toast(page)).to_contain_text("Saved.")
    # The refusal loads the team again; what is selected meanwhile is typed over.
    limit = section(page, "Settings").get_by_label("Storage limit")
    selected: list[bool] = []

    def select_meanwhile(route: Route) -> None:
        limit.select_text()
        selected.append(True)
        route.continue_()

    page.route(re.compile(r"/admin/teams/\d+$"), select_meanwhile, times=1)
    with page.expect_response(lambda one: bool(selected) and one.url.endswith("/members")):
        members.get_by_label("Role of ada").select_option("member")
    expect(page.get_by_role("alert").first).to_contain_text("last owner")
    complaints.take_refusal(409)
    expect(members.get_by_label("Role of ada")).to_have_value("owner")
    page.keyboard.insert_text("3")
    expect(limit).to_have_value("3")
    fill(page, description="Draws")
    section(page, "Settings").get_by_role("button", name="Save").click()
    expect(page.locator("#lead")).to_have_text("Draws")
    page.get_by_role("button", name="Archive team").click()
    page.get_by_role("dialog").get_by_role("button", name="Archive team").click()
    events = section(page, "What happened")
    expect(events).to_contain_text("ada changed the role of bob from Member to Administrator")
    expect(events).to_contain_text("ada added bob as Member")
    page.get_by_role("button", name="Restore team").click()
    expect(section(page, "Settings").get_by_label("Storage limit")).to_have_value("3")


def test_nobody_is_lost_among_ten_thousand(page: Page, site: Site, complaints: Complaints) -> None:
    factories.add_many(site.rt, 10_000)
    open_as(page, site.ada, "/admin/users?offset=9950")
    expect(page.get_by_text("9,951\u201310,000 of 10,001")).to_be_visible()
    page.get_by_label("Search").fill("many9999")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.goto("/admin/users?offset=20000")
    expect(page.get_by_text("10,001\u201310,001 of 10,001")).to_be_visible()
    page.goto("/admin/users/999999")
    expect(page.get_by_text("There is no such account")).to_be_visible()
    complaints.take_refusal(404)
