"""Signing in by a provider on the page /login, and what comes of it."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.fake_provider import FakeProvider
from tests.support.pages import (
    Site,
    give_totp,
    is_drawn,
    let_time_pass,
    open_as,
    opened,
    told,
)

pytestmark = needs_chromium

BUTTON = "Continue with Local login"


@pytest.fixture
def page(
    chromium: Browser, site: Site, complaints: Complaints, provider: FakeProvider
) -> Iterator[Page]:
    with opened(chromium, site.origin, complaints, provider.issuer) as page:
        yield page


def leave(page: Page) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile%3Fhere")
    page.get_by_role("button", name=BUTTON).click()


def test_an_account_is_made_and_signed_in(page: Page, site: Site) -> None:
    site.flask("external-auth", "update", "local", "--auto-provision")
    leave(page)
    page.wait_for_url("**/settings/profile?here")
    expect(page.locator("#me")).to_contain_text("jane")


def test_an_identity_that_is_new_here_is_connected_by_a_password(page: Page, site: Site) -> None:
    leave(page)
    expect(page.get_by_role("heading", name="You are new here")).to_be_focused()
    assert "oev_" not in page.url
    page.get_by_label("Username or e-mail").fill(site.ada.username)
    page.get_by_label("Password").fill(site.ada.password)
    page.get_by_role("button", name="Sign in and connect").click()
    page.wait_for_url("**/settings/profile?here")
    expect(page.locator("#me")).to_contain_text("ada")


def test_connecting_may_need_a_second_factor(page: Page, site: Site) -> None:
    page.goto("/login")
    app, _ = give_totp(page, site.ada, site.rt)
    leave(page)
    expect(page.get_by_role("heading", name="You are new here")).to_be_focused()
    page.get_by_label("Username or e-mail").fill(site.ada.username)
    page.get_by_label("Password").fill(site.ada.password)
    page.get_by_role("button", name="Sign in and connect").click()
    page.get_by_label("Code from your authenticator app").fill(app.code(1))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/settings/profile?here")
    expect(page.locator("#me")).to_contain_text("ada")
    page.wait_for_load_state("networkidle")
    page.context.clear_cookies()
    leave(page)  # from now on the provider leads here
    expect(page.get_by_label("Code from your authenticator app")).to_be_focused()


def test_pages_look_as_the_account_prefers_when_a_provider_leads_there(
    page: Page, site: Site
) -> None:
    open_as(page, site.ada, "/settings/connections")
    page.get_by_role("button", name="Connect Local login").click()
    expect(page.get_by_text("The account is connected.")).to_be_visible()
    site.change(site.ada, preferences='{"language": "de-AT", "theme_mode": "dark"}')
    is_drawn(page)
    page.context.clear_cookies()
    leave(page)
    page.wait_for_url("**/settings/profile?here")
    expect(page.locator("html[lang=de][data-theme=dark]")).to_be_attached()
    expect(page.locator("#me")).to_contain_text("ada")


def test_an_identity_that_is_new_here_gets_a_mail(page: Page, site: Site) -> None:
    leave(page)
    page.get_by_role("radio", name="I have no account").check()
    page.get_by_label("E-mail address").fill("jane@example.com")
    page.get_by_role("button", name="Continue with this address").click()
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()
    expect(page.get_by_text("We sent a link to jane@example.com.")).to_be_visible()


def test_a_refused_sign_in_is_said(page: Page, provider: FakeProvider) -> None:
    provider.claims["aud"] = "somebody else"
    leave(page)
    expect(page.get_by_role("status")).to_contain_text(
        "The other service did not complete the sign-in."
    )
    expect(page.get_by_role("button", name=BUTTON)).to_be_visible()


def test_a_provider_that_was_switched_off_meanwhile_is_said(
    page: Page, site: Site, complaints: Complaints
) -> None:
    page.goto("/login")
    expect(page.get_by_role("button", name=BUTTON)).to_be_visible()
    site.flask("external-auth", "disable", "local")
    page.get_by_role("button", name=BUTTON).click()
    expect(page.get_by_role("alert")).to_have_text("This provider is switched off.")
    complaints.take_refusal(403)


def test_an_account_is_connected_and_disconnected(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/settings/connections")
    page.get_by_role("button", name="Connect Local login").click()
    expect(page.get_by_text("The account is connected.")).to_be_visible()
    assert page.url.endswith("/settings/connections")
    page.get_by_role("button", name="Disconnect: Local login").click()
    page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
    expect(page.locator(".toast")).to_contain_text("Local login is disconnected.")
    expect(page.get_by_text("No connections")).to_be_visible()


def test_the_last_way_to_sign_in_is_explained_at_its_button(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.flask("external-auth", "update", "local", "--auto-provision")
    leave(page)
    page.wait_for_url("**/settings/profile?here")
    page.goto("/settings/connections")
    disconnect = page.get_by_role("button", name="Disconnect: Local login")
    disconnect.click()
    page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
    expect(page.get_by_role("alert")).to_contain_text("last way")
    expect(disconnect).to_be_enabled()
    complaints.take_refusal(409)


def delete_account(page: Page) -> None:
    """Try to, an hour after the sign-in, up to the question whether it is the owner."""
    page.get_by_role("button", name="Delete account").click()
    dialog = page.get_by_role("dialog", name="Delete your account?")
    dialog.get_by_label("To go on, type jane").fill("jane")
    dialog.get_by_role("button", name="Delete account").click()


@pytest.fixture
def jane(page: Page, site: Site) -> Page:
    """The page of an account whose only way in is the provider, signed in an hour ago."""
    site.flask("external-auth", "update", "local", "--auto-provision")
    leave(page)
    page.wait_for_url("**/settings/profile?here")
    page.goto("/settings/data")
    expect(page.get_by_role("button", name="Delete account")).to_be_visible()
    let_time_pass(site)
    return page


def test_the_provider_confirms_an_account_that_has_no_other_way(
    jane: Page, provider: FakeProvider, complaints: Complaints
) -> None:
    delete_account(jane)
    dialog = jane.get_by_role("dialog", name="Confirm that it is you")
    expect(dialog).to_contain_text("To delete your account")
    complaints.take_refusal(412)
    button = dialog.get_by_role("button", name="Confirm with Local login")
    expect(button).to_be_focused()
    provider.claims["auth_time"] = int(time.time())
    button.press("Enter")
    expect(jane.get_by_role("status")).to_have_text(
        "It is confirmed that it is you. Please do it once more."
    )
    assert jane.url.endswith("/settings/data")
    delete_account(jane)
    jane.wait_for_url("**/login?deleted=1")


def test_a_provider_where_somebody_else_signed_in_confirms_nothing(
    jane: Page, provider: FakeProvider, complaints: Complaints
) -> None:
    delete_account(jane)
    provider.claims |= {"auth_time": int(time.time()), "sub": "somebody else"}
    jane.get_by_role("button", name="Confirm with Local login").click()
    expect(jane.get_by_role("status")).to_contain_text("Another account was signed in")
    complaints.take_refusal(412)
    assert told(jane, "/auth/confirmation")["is_fresh"] is False
