"""Teams of one's own: made, shared, left and archived in the browser."""

import re

from playwright.sync_api import Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import Site, ask, barriers, fill, open_as

pytestmark = needs_chromium


def test_a_team_is_made_shared_left_and_archived(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob")
    site.add("cleo")
    open_as(page, bob, "/settings/teams")
    expect(page.locator(".empty-title")).to_have_text("You are not in any team")
    assert barriers(page) == []
    page.get_by_role("button", name="New team").first.click()
    dialog = page.get_by_role("dialog")
    fill(page, name="Crew", description="Who sails")
    dialog.get_by_role("button", name="Create team").click()
    page.wait_for_url(re.compile(r"/settings/teams/\d+$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Crew")
    address = page.url

    # Somebody joins; who nobody knows is said at the field.
    page.get_by_role("button", name="Add a member").click()
    fill(page, identifier="nobody")
    dialog.get_by_role("button", name="Add a member").click()
    expect(dialog.get_by_text("There is no such account.")).to_be_visible()
    complaints.take_refusal(404)
    fill(page, identifier="cleo")
    dialog.get_by_role("button", name="Add a member").click()
    role = page.get_by_label("Role of cleo")
    with page.expect_response(lambda one: one.request.method == "PATCH" and one.ok):
        role.select_option("admin")
    expect(page.get_by_role("button", name="Remove: bob")).to_have_count(0)

    # The name changes; the only owner cannot leave.
    fill(page, name="Ship")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ship")
    page.get_by_role("button", name="Leave team").click()
    dialog.get_by_role("button", name="Leave team").click()
    expect(page.get_by_text("This is the last owner of the team.")).to_be_visible()
    complaints.take_refusal(409)
    log = page.get_by_role("region", name="What happened")
    page.reload()
    expect(log).to_contain_text("from Member to Administrator")
    assert barriers(page) == []

    # With a second owner, there is a way out; then the team is no longer one's own.
    with page.expect_response(lambda one: one.request.method == "PATCH" and one.ok):
        role.select_option("owner")
    page.get_by_role("button", name="Leave team").click()
    dialog.get_by_role("button", name="Leave team").click()
    page.wait_for_url("**/settings/teams")
    page.goto(address)
    expect(page.locator(".empty-title")).to_have_text("There is no such team")
    complaints.take_refusal(403)


def test_what_a_member_sees_and_an_owner_brings_back(page: Page, site: Site) -> None:
    bob, cleo = site.add("bob"), site.add("cleo")
    open_as(page, bob, "/settings/profile")
    id = ask(page, "/teams", {"name": "Crew"})["id"]
    ask(page, f"/teams/{id}/members", {"identifier": "cleo"})
    open_as(page, cleo, f"/settings/teams/{id}")
    members = page.get_by_role("region", name="Members")
    expect(members).to_contain_text("bob")
    for name in ("Add a member", "Save", "Archive team", re.compile("^Remove")):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("region", name="What happened")).to_have_count(0)
    expect(page.get_by_role("button", name="Leave team")).to_be_visible()
    assert barriers(page) == []

    open_as(page, bob, f"/settings/teams/{id}")
    page.get_by_role("button", name="Archive team").click()
    page.get_by_role("dialog").get_by_role("button", name="Archive team").click()
    expect(page.get_by_text("This team is archived")).to_be_visible()
    page.goto("/settings/teams")
    archived = page.get_by_role("region", name="Archived")
    archived.get_by_role("link", name="Crew").click()
    page.get_by_role("button", name="Restore team").click()
    expect(page.get_by_role("button", name="Archive team")).to_be_visible()


def test_nobody_is_offered_what_is_switched_off(page: Page, site: Site) -> None:
    site.configure(teams_self_service=False)
    open_as(page, site.add("bob"), "/settings/teams")
    expect(page.locator(".empty-title")).to_have_text("You are not in any team")
    expect(page.get_by_role("button", name="New team")).to_have_count(0)
    open_as(page, site.ada, "/settings/teams")
    expect(page.get_by_role("button", name="New team").first).to_be_visible()
