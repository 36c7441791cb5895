"""Passwords on the pages /reset-password and /force-password-change, in a real browser."""

from playwright.sync_api import Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import (
    Site,
    fill,
    is_ready,
    is_signed_in,
    open_as,
    send,
    sign_in,
    sign_in_by_api,
)

pytestmark = needs_chromium

NEW = "another good password"


def test_a_forgotten_password_is_replaced_by_the_link_of_a_mail(
    page: Page, site: Site, complaints: Complaints
) -> None:
    page.goto("/login")
    page.get_by_label("Username or e-mail").fill(site.ada.email)
    page.get_by_role("link", name="Forgot password?").click()
    expect(page.get_by_label("E-mail address")).to_have_value(site.ada.email)
    send(page)
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()
    expect(page.get_by_role("button", name="Send again in")).to_have_attribute(
        "aria-disabled", "true"
    )
    path = site.mailed()
    page.goto(path)
    expect(page.get_by_role("heading", name="Choose a new password")).to_be_visible()
    assert page.evaluate("location.search") == "?step=new"
    page.reload()
    fill(page, new_password=NEW)
    send(page)
    page.wait_for_url("**/login?reset=1")
    expect(page.get_by_text("Your password has been changed.")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('token')") is None
    sign_in(page, site.ada, NEW)
    is_signed_in(page, site.ada)


def test_a_link_that_was_used_leads_to_a_new_one(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.post("/auth/password/reset/request", {"email": site.ada.email})
    path = site.mailed()
    page.goto(path)
    site.post("/auth/password/reset/confirm", {"token": path[22:], "new_password": NEW})
    fill(page, new_password="yet another password")
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("The link has already been used")
    complaints.take_refusal(400)
    fill(page, email=site.ada.email)
    send(page)
    expect(page.get_by_text(site.ada.email)).to_be_visible()


def test_nobody_learns_whether_there_is_an_account(page: Page, site: Site) -> None:
    page.goto("/reset-password?token=")
    expect(page.get_by_text("The link is incomplete.")).to_be_visible()
    fill(page, email="nobody@example.com")
    send(page)
    expect(page.get_by_text("If there is an account with this address")).to_be_visible()
    expect(page.get_by_text("nobody@example.com")).to_be_visible()
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_label("E-mail address")).to_be_focused()
    expect(page.get_by_label("E-mail address")).to_have_value("nobody@example.com")


def test_who_has_to_change_the_password_does_that_first(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob", must_change_password=True)
    page.goto("/login?return_path=%2Fsettings%2Fprofile%3Fa%3Db")
    sign_in(page, bob)
    page.wait_for_url("**/force-password-change?return_path=*")
    expect(page.get_by_text("Not bob?")).to_be_visible()
    fill(page, current_password="a wrong password", new_password="a wrong password")
    send(page)
    expect(page.get_by_text("must differ from the current one")).to_be_visible()
    fill(page, new_password=NEW)
    send(page)
    expect(page.get_by_text("This is not your current password.")).to_be_visible()
    expect(page.get_by_label("Current password", exact=True)).to_be_focused()
    complaints.take_refusal(401)
    fill(page, current_password=bob.password)
    send(page)
    page.wait_for_url("**/settings/profile?a=b")
    expect(page.locator("#me")).to_contain_text("bob")
    page.goto("/force-password-change")
    is_signed_in(page, bob)


def test_a_forced_change_can_be_left_or_begins_again_without_a_session(
    page: Page, site: Site, complaints: Complaints
) -> None:
    bob = site.add("bob", must_change_password=True)
    sign_in_by_api(page, bob)
    page.goto("/settings/profile")
    page.wait_for_url("**/force-password-change")
    expect(page.get_by_text("Not bob?")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login?signed_out=1")
    is_ready(page)
    sign_in(page, bob)
    page.wait_for_url("**/force-password-change")
    expect(page.get_by_text("Not bob?")).to_be_visible()
    page.context.clear_cookies(name="service_access")
    fill(page, current_password=bob.password, new_password=NEW)
    send(page)
    page.wait_for_url("**/login")
    is_ready(page)
    complaints.forgive()  # of the session that is over


def test_where_there_are_no_passwords_none_is_reset_or_changed(page: Page, site: Site) -> None:
    bob = site.add("bob")
    open_as(page, bob, "/settings/profile")
    site.configure(auth_password_login_enabled=False)
    site.change(bob, must_change_password=True)
    site.follows("data-no-passwords")
    page.goto("/settings/profile")
    expect(page.locator("#me")).to_contain_text("bob")
    page.goto("/reset-password?token=a")
    expect(page.get_by_role("heading", name="No passwords here")).to_be_visible()
    assert page.locator("form").count() == 0
