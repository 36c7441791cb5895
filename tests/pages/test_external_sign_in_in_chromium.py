"""Signing in by a provider on the page /login, and what comes of it."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.challenge import give_totp
from tests.support.external import add_provider
from tests.support.factories import KnownUser
from tests.support.fake_provider import FakeProvider
from tests.support.pages import (
    SMALL,
    Site,
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


def connect(page: Page, user: KnownUser) -> None:
    """Sign in with a password where somebody is new here."""
    expect(page.get_by_role("heading", name="You are new here")).to_be_focused()
    page.get_by_label("Username or e-mail").fill(user.username)
    page.get_by_label("Password").fill(user.password)
    page.get_by_role("button", name="Sign in and connect").click()


def test_an_identity_that_is_new_here_is_connected_by_a_password(
    page: Page, site: Site, provider: FakeProvider
) -> None:
    leave(page)
    expect(page.get_by_role("heading", name="You are new here")).to_be_focused()
    expect(page).not_to_have_url(re.compile("oev_"))
    connect(page, site.ada)
    page.wait_for_url("**/settings/profile?here")
    expect(page.locator("#me")).to_contain_text("ada")
    is_drawn(page)
    page.context.clear_cookies()
    # It may need a second factor, and from then on does.
    provider.claims["sub"] = "another"
    bob = site.add("bob")
    app = give_totp(site.rt, bob).app
    leave(page)
    connect(page, bob)
    page.get_by_label("Code from your authenticator app").fill(app.code(1))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/settings/profile?here")
    expect(page.locator("#me")).to_contain_text("bob")
    is_drawn(page)
    page.context.clear_cookies()
    leave(page)
    expect(page.get_by_label("Code from your authenticator app")).to_be_focused()


def test_an_identity_is_connected_used_and_disconnected(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/settings/connections")
    page.get_by_role("button", name="Connect Local login").click()
    expect(page.get_by_text("The account is connected.")).to_be_visible()
    page.wait_for_url("**/settings/connections")
    # Pages look as the account prefers when a provider leads there.
    site.change(site.ada, preferences='{"language": "de-AT", "theme_mode": "dark"}')
    is_drawn(page)
    page.context.clear_cookies()
    leave(page)
    page.wait_for_url("**/settings/profile?here")
    expect(page.locator("html[lang=de][data-theme=dark]")).to_be_attached()
    expect(page.locator("#me")).to_contain_text("ada")
    page.goto("/settings/connections?lang=en")
    page.get_by_role("button", name="Disconnect: Local login").click()
    page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
    expect(page.locator(".toast")).to_contain_text("Local login has been disconnected.")
    expect(page.get_by_text("No connections")).to_be_visible()


def test_services_have_their_marks(page: Page, site: Site) -> None:
    """Where people choose one: as the guides for these brands ask, and others a letter."""
    names = {"github": "GitHub", "google": "Google", "microsoft": "Microsoft", "qq": "QQ"}
    for kind, name in names.items():
        add_provider(site.rt, kind=kind, key=kind, display_name=name)
    page.set_viewport_size(SMALL)
    colours = {
        "github": ["currentColor"],
        "google": ["#ea4335", "#4285f4", "#fbbc05", "#34a853"],
        "microsoft": ["#f25022", "#7fba00", "#00a4ef", "#ffb900"],
        "qq": [],
    }

    def has_marks(verb: str) -> None:
        for kind, name in names.items():
            button = page.get_by_role("button", name=f"{verb} {name}", exact=True)
            fills = button.locator("svg[aria-hidden=true] path")
            expect(fills).to_have_count(len(colours[kind]))
            drawn = fills.evaluate_all("(all) => all.map((one) => one.getAttribute('fill'))")
            assert drawn == colours[kind]
        sizes = page.locator(".brand-mark").evaluate_all(
            "(all) => all.map((one) => [one.clientWidth, one.clientHeight].join())"
        )
        assert len(sizes) == 3
        assert len(set(sizes)) == 1

    page.goto("/login")
    has_marks("Continue with")
    letter = page.get_by_role("button", name="Continue with QQ").locator(".letter")
    expect(letter).to_have_text("Q")
    open_as(page, site.ada, "/settings/connections")
    has_marks("Connect")
    page.goto("/admin/external-auth")
    expect(page.locator(".brand-mark")).to_have_count(3)


def test_what_comes_of_it_is_said(
    page: Page, site: Site, provider: FakeProvider, complaints: Complaints
) -> None:
    site.flask("external-auth", "update", "local", "--auto-provision")
    provider.claims["email"] = None
    leave(page)
    page.get_by_role("radio", name="I have no account").check()
    page.get_by_label("E-mail address").fill("jane@example.com")
    page.get_by_role("button", name="Continue with this address").click()
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()
    expect(page.get_by_text("jane@example.com")).to_be_visible()
    provider.claims["aud"] = "somebody else"
    leave(page)
    expect(page.get_by_role("status")).to_contain_text(
        "The other service did not complete the sign-in."
    )
    expect(page.get_by_role("button", name=BUTTON)).to_be_visible()
    site.flask("external-auth", "disable", "local")
    page.get_by_role("button", name=BUTTON).click()
    expect(page.get_by_role("alert")).to_have_text("This provider is switched off.")
    complaints.take_refusal(403)


def delete_account(page: Page) -> None:
    """Try to, an hour after the sign-in, up to the question whether it is the owner."""
    page.get_by_role("button", name="Delete account").click()
    dialog = page.get_by_role("dialog", name="Delete your account?")
    dialog.get_by_label("To continue, type jane").fill("jane")
    dialog.get_by_role("button", name="Delete account").click()


def test_an_account_whose_only_way_in_is_the_provider_lives_and_ends(
    page: Page, site: Site, provider: FakeProvider, complaints: Complaints
) -> None:
    site.flask("external-auth", "update", "local", "--auto-provision")
    leave(page)
    page.wait_for_url("**/settings/profile?here")
    expect(page.locator("#me")).to_contain_text("jane")
    # That it is the last way is explained at the button.
    page.goto("/settings/connections")
    disconnect = page.get_by_role("button", name="Disconnect: Local login")
    disconnect.click()
    page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
    expect(page.get_by_role("alert")).to_contain_text("last way")
    expect(disconnect).to_be_enabled()
    complaints.take_refusal(409)
    # Where somebody else signs in, nothing is confirmed.
    page.goto("/settings/data")
    expect(page.get_by_role("button", name="Delete account")).to_be_visible()
    let_time_pass(site)
    delete_account(page)
    provider.claims |= {"auth_time": int(time.time()), "sub": "somebody else"}
    page.get_by_role("button", name="Confirm with Local login").click()
    expect(page.get_by_role("status")).to_contain_text("Another account was signed in")
    complaints.take_refusal(412)
    assert told(page, "/auth/confirmation")["is_fresh"] is False
    # But by the owner.
    del provider.claims["sub"]
    is_drawn(page)
    delete_account(page)
    dialog = page.get_by_role("dialog", name="Confirm that it is you")
    expect(dialog).to_contain_text("To delete your account")
    complaints.take_refusal(412)
    button = dialog.get_by_role("button", name="Confirm with Local login")
    expect(button).to_be_focused()
    button.press("Enter")
    expect(page.get_by_role("status")).to_have_text(
        "You have confirmed that it is you. Please try again now."
    )
    page.wait_for_url("**/settings/data")
    delete_account(page)
    page.wait_for_url("**/login?deleted=1")
