"""Somebody else is signed in beside an open page: what is typed there is saved for nobody."""

import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, Request, expect

from app.pages.files import STATIC
from app.users.models import User, UserProfile
from tests.support import factories
from tests.support.browser import Complaints, needs_chromium
from tests.support.images import encoded, quarters
from tests.support.pages import Site, fill, is_drawn, is_signed_in, open_as, send, sign_in_by_api

pytestmark = needs_chromium

PROFILES = UserProfile.__table__
SAID = "This browser is signed in to another account, so nothing was changed."


def save_name(page: Page, _: Path) -> None:
    fill(page, display_name="Typed by Ada")
    send(page)


def send_picture(page: Page, folder: Path) -> None:
    picture = folder / "picture.png"
    picture.write_bytes(encoded(quarters((64, 64))))
    page.locator("#picture-file").set_input_files(picture)
    page.get_by_role("dialog").get_by_role("button", name="Use this").click()


def choose_theme(page: Page, _: Path) -> None:
    page.get_by_label("Colours").first.select_option("dark")


def change_address(page: Page, _: Path) -> None:
    page.get_by_role("button", name="Change", exact=True).first.click()
    fill(page, new_email="typed@example.com")
    page.locator("[name=new_email]").press("Enter")


def make_user(page: Page, _: Path) -> None:
    page.get_by_role("button", name="New account").click()
    fill(page, username="typed", email="typed@example.com")
    page.get_by_role("dialog").locator("[type=submit]").click()


CHANGES = [
    ("/settings/profile", save_name),
    ("/settings/profile", send_picture),
    ("/settings/preferences", choose_theme),
    ("/settings/security", change_address),
    ("/admin/users", make_user),
]


def stored(site: Site) -> list[Any]:
    """Return all that is stored of accounts."""
    with site.rt.reading() as session:
        tables = (sa.select(table).order_by(table.c[0]) for table in (User.__table__, PROFILES))
        return [list(map(tuple, session.execute(one))) for one in tables]


@pytest.mark.parametrize(("path", "change"), CHANGES)
def test_what_one_types_is_not_saved_for_the_other(
    page: Page, site: Site, complaints: Complaints, tmp_path: Path, path: str, change: Any
) -> None:
    zoe = site.add("zoe", role="admin")
    open_as(page, site.ada, path)
    is_drawn(page)
    before = stored(site)
    sign_in_by_api(page, zoe)  # as a frontend does that knows nothing of this page
    change(page, tmp_path)
    expect(page.locator("#me")).to_contain_text("zoe")
    expect(page.locator("#notes")).to_contain_text(SAID)
    assert stored(site) == before
    complaints.take_refusal(403)
    page.reload()
    expect(page.locator("#me")).to_contain_text("zoe")
    expect(page.locator("#notes")).not_to_contain_text(SAID)


def test_it_is_not_saved_after_a_refresh_either(
    page: Page, site: Site, complaints: Complaints
) -> None:
    """What is refused for the token's sake is sent once more, by then with the other's."""
    open_as(page, site.ada, "/settings/profile")
    is_drawn(page)
    before = stored(site)
    sign_in_by_api(page, site.add("zoe"))
    page.context.clear_cookies(name="service_access")
    save_name(page, Path())
    expect(page.locator("#notes")).to_contain_text(SAID)
    assert stored(site)[1:] == before[1:]
    complaints.take_refusal(401)
    complaints.take_refusal(403)


def test_a_forced_new_password_is_not_set_for_another(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob", must_change_password=True)
    sign_in_by_api(page, bob)
    page.goto("/force-password-change")
    expect(page.get_by_text("bob")).to_be_visible()
    sign_in_by_api(page, site.ada)
    fill(page, current_password=site.ada.password, new_password="a password of bob's")
    send(page)
    is_signed_in(page, site.ada)
    complaints.take_refusal(403)
    page.context.clear_cookies()
    sign_in_by_api(page, site.ada)


def test_whoever_may_stay_on_the_page_is_told_there(
    page: Page, site: Site, complaints: Complaints
) -> None:
    """A page with drafts asks before it is loaded again, and its reader may not want that."""
    open_as(page, site.ada, "/admin/settings/site")
    is_drawn(page)
    page.locator("#branding_title").fill("Typed by Ada")
    sign_in_by_api(page, site.add("zoe", role="admin"))
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text=SAID)).to_be_visible()
    expect(page.locator("#branding_title")).to_have_value("Typed by Ada")
    complaints.take_refusal(403)


def test_every_change_says_whom_it_is_meant_for(page: Page, site: Site) -> None:
    """A new account is none of who was signed in before."""
    changes: list[Request] = []
    page.on("request", lambda one: changes.append(one) if one.method != "GET" else None)
    sign_in_by_api(page, site.ada)
    page.goto("/register")
    expect(page.get_by_text("You are signed in as ada.")).to_be_visible()
    fill(page, username="bob", email="bob@example.com", password=factories.PASSWORD)
    send(page)
    page.wait_for_url("**/settings/profile")
    is_drawn(page)
    save_name(page, Path())
    expect(page.locator(".toast")).to_be_visible()
    bob = page.evaluate("fetch('/api/v1/auth/me').then((one) => one.json())")["data"]["id"]
    named = [
        (one.method, one.headers.get("x-session-user"))
        for one in changes
        if re.search("/(profile|preferences)$", one.url)
    ]
    assert named == [("PATCH", str(bob)), ("PATCH", str(bob))]


def test_only_three_modules_send_requests() -> None:
    """The one of the texts only reads; the two that send changes say for whom."""
    sending = re.compile(r"\bfetch\(|XMLHttpRequest|sendBeacon|EventSource")
    found = {
        file.relative_to(STATIC).as_posix()
        for file in STATIC.rglob("*.js")
        if sending.search(file.read_text())
    }
    assert found == {"base/api.js", "base/i18n.js", "account/upload.js"}
