"""Tokens for programs: made, used, renamed and revoked by their owner, and by administrators."""

import datetime
import json
import re
import urllib.error
import urllib.request
from datetime import timedelta
from typing import Any, cast

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import moment
from tests.support.launcher import eventually
from tests.support.leaks import watch
from tests.support.pages import (
    Site,
    barriers,
    faults_of,
    fill,
    is_drawn,
    let_time_pass,
    open_as,
    sign_in_by_api,
    told,
)
from tests.support.programs import add_token

pytestmark = needs_chromium

TOKENS = "/settings/tokens"
TOO_WIDE = """() => [...document.querySelectorAll("dialog")].some((one) =>
  one.scrollWidth > one.clientWidth)"""


def toast(page: Page) -> Locator:
    return page.locator(".toast")


def dialog(page: Page, name: str | re.Pattern[str]) -> Locator:
    return page.get_by_role("dialog", name=name)


def asked_with(
    site: Site, token: str, path: str = "/auth/me", change: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Return status and data, or the code, of what a program asks with a token."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{site.origin}/api/v1{path}",
        data=json.dumps(change).encode() if change else None,
        headers=headers,
        method="PATCH" if change else "GET",
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["code"]


def choose(page: Page, area: str, level: str) -> None:
    group = page.get_by_role("radiogroup", name=area)
    group.get_by_label(level, exact=True).check()


def secret(page: Page) -> str:
    """Return the token that is shown once."""
    text = page.locator("dialog .secret-lines code").text_content() or ""
    watch.note(text)
    return text


def make(page: Page, name: str, area: str = "Files", level: str = "Read") -> str:
    """Make a token; return it."""
    page.get_by_role("button", name="New token").click()
    fill(page, name=name)
    choose(page, area, level)
    page.get_by_role("button", name="Create token").click()
    token = secret(page)
    page.get_by_role("button", name="I have kept a copy").click()
    expect(page.get_by_role("button", name=f"Rename: {name}")).to_be_focused()
    return token


def listed(page: Page) -> list[dict[str, Any]]:
    """Return the account's tokens as the API has them."""
    return cast("list[dict[str, Any]]", told(page, "/auth/tokens"))


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row", name=re.compile(f"^{name}"))


def test_a_token_is_made_used_renamed_and_revoked(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob")
    open_as(page, bob, TOKENS)
    expect(page.get_by_text("No tokens yet")).to_be_visible()
    token = make(page, "Laptop")
    status, me = asked_with(site, token)
    assert (status, me["username"], me["token"]["scopes"]) == (200, "bob", ["files:read"])
    page.reload()
    line = row(page, "Laptop")
    expect(line).to_contain_text(token[:8])
    expect(line).to_contain_text("Files: read")
    expect(line).to_contain_text("127.0.0.1")
    line.get_by_role("button", name="Rename").click()
    fill(page, name="Laptop at home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Rename: Laptop at home")).to_be_focused()
    expect(toast(page)).to_contain_text("Saved.")
    # Nothing happens by mistake: the focus is on Cancel.
    revoke = page.get_by_role("button", name="Revoke: Laptop at home")
    revoke.click()
    question = dialog(page, "Revoke “Laptop at home”?")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(revoke).to_be_focused()
    assert asked_with(site, token)[0] == 200
    revoke.click()
    question.get_by_role("button", name="Revoke token").click()
    expect(page.get_by_text("No tokens yet")).to_be_visible()
    expect(page.locator("#title")).to_be_focused()
    expect(toast(page)).to_contain_text("The token has been revoked.")
    assert asked_with(site, token) == (401, "auth.token_invalid")


def test_the_secret_is_shown_once_and_not_lost_by_mistake(page: Page, site: Site) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.origin)
    open_as(page, site.ada, TOKENS)
    page.get_by_role("button", name="New token").click()
    fill(page, name="Backup")
    choose(page, "Administration", "Read")
    page.get_by_role("button", name="Create token").click()
    shown = dialog(page, "Your new token “Backup”")
    copy = shown.locator(".secret-ways button")
    expect(copy).to_be_focused()
    expect(page.locator("dialog")).to_have_count(1)
    assert barriers(page) == []
    page.keyboard.press("Enter")
    expect(copy).to_have_text("Copied")
    token = secret(page)
    for _ in range(3):
        page.keyboard.press("Escape")
    page.mouse.click(3, 3)
    expect(shown).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == token
    with page.expect_download() as download:
        shown.get_by_role("link", name="Download").click()
    content = download.value.path().read_text()
    assert content.endswith(f"\n\n{token}\n")
    assert "Administration: read" in content
    shown.get_by_role("button", name="I have kept a copy").click()
    expect(page.locator("dialog")).to_have_count(0)
    assert token not in page.content()
    page.reload()
    is_drawn(page)
    assert token not in page.content()


def test_it_is_made_by_keyboard_alone(page: Page, site: Site) -> None:
    open_as(page, site.add("bob"), TOKENS)
    page.get_by_role("button", name="New token").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("Script")
    page.keyboard.press("Tab")
    profile = page.get_by_role("radiogroup", name="Profile")
    expect(profile.get_by_label("No access")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(profile.get_by_label("Write")).to_be_checked()
    expect(profile.get_by_label("Write")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog(page, "Your new token “Script”")).to_be_visible()
    watch.note(secret(page))
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Rename: Script")).to_be_focused()
    expect(row(page, "Script")).to_contain_text("Profile: read and write")


def test_what_a_token_may_not_do_without_the_role_is_said(page: Page, site: Site) -> None:
    bob = site.add("bob", role="admin")
    add_token(site.rt, bob, "profile", "admin:read", name="Report")
    open_as(page, bob, TOKENS)
    expect(row(page, "Report")).not_to_contain_text("not in effect")
    site.change(bob, role="user")
    page.reload()
    expect(row(page, "Report")).to_contain_text("Administration: read not in effect")
    page.context.clear_cookies()
    open_as(page, site.ada, f"/admin/users/{bob.id}")
    expect(row(page, "Report")).to_contain_text("Administration: read not in effect")


def test_only_administrators_are_offered_the_administration(page: Page, site: Site) -> None:
    open_as(page, site.add("bob"), TOKENS)
    page.get_by_role("button", name="New token").click()
    expect(page.get_by_role("radiogroup")).to_have_count(3)
    page.keyboard.press("Escape")
    page.context.clear_cookies()
    open_as(page, site.ada, TOKENS)
    page.get_by_role("button", name="New token").click()
    expect(page.get_by_role("radiogroup")).to_have_count(4)


def test_what_is_wrong_is_said_at_its_field(page: Page, site: Site, complaints: Complaints) -> None:
    open_as(page, site.ada, TOKENS)
    make(page, "Backup")
    page.get_by_role("button", name="New token").click()
    form = dialog(page, "New token")
    submit = form.get_by_role("button", name="Create token")
    submit.click()
    name = form.get_by_label("Name")
    expect(name).to_have_accessible_description(re.compile("Please fill in"))
    expect(name).to_be_focused()
    fill(page, name="backup")
    submit.click()
    expect(form.get_by_role("alert")).to_have_text("Allow at least one of these.")
    expect(form.get_by_label("No access").first).to_be_focused()
    choose(page, "Files", "Write")
    expect(form.get_by_role("alert")).to_have_count(0)
    submit.click()
    expect(name).to_have_accessible_description(re.compile("There is already a token"))
    expect(name).to_be_focused()
    complaints.take_refusal(409)
    fill(page, name="Another backup")
    end = form.get_by_label("Expires", exact=True)
    end.select_option(label="On a date…")
    date = form.get_by_label("Date", exact=True)
    for day in ("", "2020-01-01", "2190-01-01"):
        date.fill(day)
        submit.click()
        expect(date).to_have_accessible_description(re.compile("^Choose a date from"))
        expect(date).to_be_focused()
    # Days begin where the browser is.
    tomorrow = datetime.date.fromisoformat(date.get_attribute("min") or "")
    date.fill(f"{tomorrow + timedelta(days=6)}")
    submit.click()
    secret(page)
    made, end = (moment(listed(page)[0][when]) for when in ("created_at", "expires_at"))
    assert end - made == timedelta(days=7)


def test_whoever_signed_in_long_ago_confirms_first(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, TOKENS)
    let_time_pass(site)
    page.get_by_role("button", name="New token").click()
    fill(page, name="Backup")
    choose(page, "Files", "Read")
    page.get_by_role("button", name="Create token").click()
    question = dialog(page, "Confirm that it is you")
    expect(question).to_contain_text("To create a token")
    complaints.take_refusal(412)
    # What was chosen is there still.
    page.keyboard.press("Escape")
    expect(page.get_by_role("radiogroup", name="Files").get_by_label("Read")).to_be_checked()
    page.get_by_role("button", name="Create token").click()
    question.get_by_label("Your password").fill(site.ada.password)
    page.keyboard.press("Enter")
    expect(dialog(page, "Your new token “Backup”")).to_be_visible()
    complaints.take_refusal(412)
    secret(page)


def test_all_are_revoked_at_once(page: Page, site: Site) -> None:
    bob = site.add("bob")
    tokens = [add_token(site.rt, bob, "files", name=name)[0] for name in ("One", "Two", "Three")]
    open_as(page, bob, TOKENS)
    page.get_by_role("button", name="Revoke all tokens").click()
    question = dialog(page, "Revoke all tokens?")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    question.get_by_role("button", name="Revoke all tokens").click()
    expect(toast(page)).to_contain_text("3 tokens have been revoked.")
    expect(page.get_by_text("No tokens yet")).to_be_visible()
    assert {asked_with(site, token)[0] for token in tokens} == {401}


def test_one_that_has_expired_says_so_and_is_removed_without_a_question(
    page: Page, site: Site
) -> None:
    bob = site.add("bob")
    yesterday = site.rt.clock.now() - timedelta(days=1)
    add_token(site.rt, bob, "files", name="Old phone", expires_at=yesterday)
    add_token(site.rt, bob, "files", name="Phone", expires_at=None)
    open_as(page, bob, TOKENS)
    rows = page.locator("tbody tr")
    expect(rows.first).to_contain_text("Phone")
    expect(rows.first).not_to_contain_text("expired")
    expect(row(page, "Old phone")).to_contain_text("expired")
    page.get_by_role("button", name="Remove: Old phone").click()
    expect(rows).to_have_count(1)
    expect(toast(page)).to_contain_text("The token has been removed.")


def test_one_that_was_revoked_elsewhere_is_shown_no_more(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob")
    add_token(site.rt, bob, "files", name="Phone")
    add_token(site.rt, bob, "files", name="Laptop")
    open_as(page, bob, TOKENS)
    rename = page.get_by_role("button", name="Rename: Phone")
    rename.click()
    site.flask("tokens", "revoke", str(listed(page)[1]["id"]))
    fill(page, name="Telephone")
    page.keyboard.press("Enter")
    expect(page.locator("#problem")).to_contain_text("no longer exists")
    expect(page.locator("tbody tr")).to_have_count(1)
    complaints.take_refusal(404)


def test_settings_say_how_long_a_token_may_be_valid(page: Page, site: Site) -> None:
    sign_in_by_api(page, site.ada)

    def ends(days: int) -> list[str]:
        site.configure(auth_access_token_max_days=days)
        marked = page.locator(f'#main[data-token-days="{days}"]')
        eventually(lambda: page.goto(TOKENS) and marked.count(), "the page's following")
        page.get_by_role("button", name="New token").click()
        return page.get_by_label("Expires", exact=True).locator("option").all_text_contents()

    assert ends(365) == ["In 30 days", "In 90 days", "In 365 days", "On a date…"]
    expect(page.get_by_label("Expires", exact=True)).to_have_value("90")
    assert ends(14) == ["In 14 days", "On a date…"]
    assert ends(0) == ["In 30 days", "In 90 days", "In 365 days", "On a date…", "Never"]
    fill(page, name="For ever")
    choose(page, "Events", "Read")
    page.get_by_label("Expires", exact=True).select_option(label="Never")
    expect(page.get_by_text("A date is safer.")).to_be_visible()
    page.get_by_role("button", name="Create token").click()
    secret(page)
    page.get_by_role("button", name="I have kept a copy").click()
    expect(row(page, "For ever")).to_contain_text("Never")


def test_where_they_are_switched_off_they_can_still_be_revoked(page: Page, site: Site) -> None:
    token, _ = add_token(site.rt, site.ada, "files", name="Phone")
    site.configure(auth_access_tokens_enabled=False)
    sign_in_by_api(page, site.ada)
    marked = page.locator("#main:not([data-token-days])")
    eventually(lambda: page.goto(TOKENS) and marked.count(), "the page's following")
    off = page.get_by_text("Tokens are switched off on this site.")
    expect(off).to_be_visible()
    expect(page.get_by_role("button", name="New token")).to_have_count(0)
    assert asked_with(site, token) == (401, "auth.token_invalid")
    page.get_by_role("button", name="Revoke: Phone").click()
    page.get_by_role("button", name="Revoke token").click()
    expect(toast(page)).to_contain_text("The token has been revoked.")
    expect(off).to_be_visible()
    assert listed(page) == []


def test_fifty_are_the_most(page: Page, site: Site) -> None:
    bob = site.add("bob")
    for number in range(50):
        add_token(site.rt, bob, "files", name=f"Phone {number}")
    open_as(page, bob, TOKENS)
    expect(page.get_by_text("You have 50 tokens, the most there can be.")).to_be_visible()
    expect(page.get_by_role("button", name="New token")).to_have_count(0)


def test_a_new_password_keeps_them_and_offers_to_revoke_them(page: Page, site: Site) -> None:
    bob = site.add("bob")
    open_as(page, bob, "/settings/security")
    password = page.get_by_role("region", name="Password")
    expect(password.get_by_role("link", name="tokens")).to_have_attribute("href", TOKENS)
    fill(page, current_password=bob.password, new_password="a new long password")
    with page.expect_response(lambda answer: answer.url.endswith("/auth/tokens")):
        page.keyboard.press("Enter")
    expect(toast(page)).to_contain_text("Your password has been changed.")
    expect(password.get_by_role("status")).to_have_count(0)
    token, _ = add_token(site.rt, bob, "files", name="Phone")
    fill(page, current_password="a new long password", new_password="another long password")
    page.keyboard.press("Enter")
    expect(password.get_by_role("status")).to_contain_text("1 token is still valid.")
    assert asked_with(site, token)[0] == 200
    password.get_by_role("button", name="Revoke all tokens").click()
    expect(toast(page)).to_contain_text("1 token has been revoked.")
    expect(password.get_by_role("status")).to_have_count(0)
    assert asked_with(site, token)[0] == 401


def test_an_administrator_ends_a_token_and_its_program_stays_outside(
    page: Page, site: Site
) -> None:
    bob = site.add("bob")
    phone, _ = add_token(site.rt, bob, "files", name="Phone")
    others = [add_token(site.rt, bob, "profile:read", name=name)[0] for name in ("One", "Two")]
    open_as(page, site.ada, f"/admin/users/{bob.id}")
    panel = page.get_by_role("region", name="Tokens")
    expect(panel.locator("tbody tr")).to_have_count(3)
    expect(panel).to_contain_text("Files: read and write")
    panel.get_by_role("button", name="Revoke: Phone").click()
    page.get_by_role("button", name="Revoke token").click()
    expect(panel.locator("tbody tr")).to_have_count(2)
    assert asked_with(site, phone) == (401, "auth.token_invalid")
    assert {asked_with(site, token)[0] for token in others} == {200}
    panel.get_by_role("button", name="Revoke all tokens").click()
    dialog(page, "Revoke all tokens").get_by_role("button", name="Revoke all tokens").click()
    expect(panel).to_contain_text("None.")
    assert {asked_with(site, token)[0] for token in others} == {401}
    # One's own are in one's account.
    page.goto(f"/admin/users/{site.ada.id}")
    is_drawn(page)
    expect(page.get_by_role("link", name="Open your account")).to_be_visible()
    expect(page.get_by_role("region", name="Tokens")).to_have_count(0)


def test_what_tokens_were_made_and_did_is_told_in_words(page: Page, site: Site) -> None:
    open_as(page, site.add("bob"), TOKENS)
    token = make(page, "Phone", "Profile", "Write")
    assert asked_with(site, token, "/auth/profile", {"display_name": "Bob"})[0] == 200
    page.get_by_role("button", name="Revoke: Phone").click()
    page.get_by_role("button", name="Revoke token").click()
    expect(page.get_by_text("No tokens yet")).to_be_visible()
    page.goto("/settings/activity")
    events = page.locator("tbody tr")
    expect(events.nth(0)).to_contain_text("bob revoked the token “Phone”")
    expect(events.nth(0)).to_contain_text("Chrome")
    expect(events.nth(1)).to_contain_text("bob changed the profile")
    expect(events.nth(1)).to_contain_text("Program with a token")
    expect(events.nth(2)).to_contain_text("bob created the token “Phone”")
    expect(events.nth(2)).to_contain_text("Chrome")


@pytest.mark.parametrize("state", ["form", "question", "secret"])
def test_its_dialogs_can_be_read_by_everybody(page: Page, site: Site, state: str) -> None:
    add_token(site.rt, site.ada, "files", name="Phone")
    open_as(page, site.ada, TOKENS)
    if state == "question":
        page.get_by_role("button", name="Revoke: Phone").click()
    else:
        page.get_by_role("button", name="New token").click()
        fill(page, name="Backup of the laptop in the office on the second floor")
        page.get_by_label("Expires", exact=True).select_option(label="On a date…")
        page.get_by_role("button", name="Create token").click()
    if state == "secret":
        choose(page, "Files", "Read")
        page.get_by_label("Expires", exact=True).select_option(label="In 30 days")
        page.get_by_role("button", name="Create token").click()
        secret(page)
    # A dialog may be higher than a screen, and is scrolled then.
    assert [one for one in faults_of(page) if "<dialog" not in one] == []
    assert page.evaluate(TOO_WIDE) is False
