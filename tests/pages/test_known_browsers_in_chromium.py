"""Staying signed in, and browsers that are trusted: on /login and /settings/security."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from app.browsers import queries as browsers
from tests.support.authenticator import EnabledTotp
from tests.support.browser import needs_chromium
from tests.support.challenge import give_totp
from tests.support.launcher import eventually
from tests.support.pages import Site, is_signed_in, open_as, sign_in, told

pytestmark = needs_chromium

MONTH = 30 * 86_400
SESSION = ["service_access", "service_csrf", "service_refresh"]
TRUST = "Trust this browser for 30 days"


def lasting(context: BrowserContext) -> list[str]:
    """Return which cookies of the session outlast the window."""
    kept = {str(cookie.get("name")): cookie.get("expires") for cookie in context.cookies()}
    assert kept.keys() >= {*SESSION}
    return [name for name in SESSION if kept[name] != -1]


def sign_out(page: Page) -> None:
    page.locator("#account-menu summary").click()
    page.locator("#sign-out").click()
    expect(page.get_by_label("Username or e-mail")).to_be_visible()


@pytest.fixture
def factors(page: Page, site: Site) -> EnabledTotp:
    """The authenticator app of `ada`; browsers are trusted for a month."""
    factors = give_totp(site.rt, site.ada)
    site.configure(auth_mfa_trusted_device_secs=MONTH)
    login = {"identifier": "ada", "password": site.ada.password}
    eventually(lambda: site.post("/auth/login", login)["remember_device_secs"], "the offer")
    return factors


def test_who_does_not_stay_signed_in_has_cookies_of_the_window_and_the_choice_is_kept(
    page: Page, site: Site
) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    box = page.get_by_role("checkbox", name="Stay signed in")
    expect(box).to_be_checked()
    box.uncheck()
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    assert lasting(page.context) == []
    sign_out(page)
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    expect(box).not_to_be_checked()
    box.check()
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    assert set(lasting(page.context)) >= {"service_refresh", "service_csrf"}


def test_a_trusted_browser_skips_the_second_step_until_it_is_trusted_no_more(
    page: Page, site: Site, factors: EnabledTotp
) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fsecurity")
    sign_in(page, site.ada)
    box = page.get_by_role("checkbox", name=TRUST)
    expect(box).not_to_be_checked()
    box.check()
    page.get_by_role("textbox").fill(factors.app.code())
    page.get_by_role("button", name="Continue").click()
    row = page.locator("#browsers tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("This browser")
    sign_out(page)
    page.goto("/login?return_path=%2Fsettings%2Fsecurity")
    sign_in(page, site.ada)
    expect(row).to_have_count(1)
    page.get_by_role("button", name=re.compile("Stop trusting: ")).click()
    expect(page.get_by_text("The browser is no longer trusted.")).to_be_visible()
    expect(page.locator("#browsers")).to_contain_text("No trusted browsers")
    expect(page.locator("#browsers-title")).to_be_focused()
    sign_out(page)
    page.goto("/login?return_path=%2Fsettings%2Fsecurity")
    sign_in(page, site.ada)
    expect(page.get_by_role("heading", name="Second step")).to_be_visible()


def test_trust_is_not_offered_to_who_leaves_nothing_behind(
    page: Page, site: Site, factors: EnabledTotp
) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    page.get_by_role("checkbox", name="Stay signed in").uncheck()
    sign_in(page, site.ada)
    expect(page.get_by_label("Code from your authenticator app")).to_be_focused()
    expect(page.get_by_role("checkbox")).to_have_count(0)
    page.get_by_role("textbox").fill(factors.app.code())
    page.get_by_role("button", name="Continue").click()
    is_signed_in(page, site.ada)
    assert lasting(page.context) == []


def test_a_provider_leads_to_the_same_offer(page: Page, site: Site) -> None:
    query = "mfa=required&flow=mfa_abc&expires_in=300&methods=totp&remember_device_secs=7200"
    page.goto(f"/login?{query}")
    for _ in range(2):
        expect(page.get_by_role("checkbox", name="Trust this browser for 2 hours")).to_be_visible()
        expect(page).not_to_have_url(re.compile("remember_device_secs"))
        page.reload()


def test_without_the_setting_nothing_is_offered_or_listed(page: Page, site: Site) -> None:
    factors = give_totp(site.rt, site.ada)
    page.goto("/login?return_path=%2Fsettings%2Fsecurity")
    sign_in(page, site.ada)
    expect(page.get_by_label("Code from your authenticator app")).to_be_focused()
    expect(page.get_by_role("checkbox")).to_have_count(0)
    page.get_by_role("textbox").fill(factors.app.code())
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#two-step")).to_be_visible()
    expect(page.locator("#browsers")).to_have_count(0)


def test_turning_the_second_step_off_ends_the_trust_at_once(
    page: Page, site: Site, factors: EnabledTotp
) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fsecurity")
    sign_in(page, site.ada)
    page.get_by_role("checkbox", name=TRUST).check()
    page.get_by_role("textbox").fill(factors.app.code())
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#browsers tbody tr")).to_have_count(1)
    page.locator("#two-step").get_by_role("button", name="Turn off").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill(factors.recovery_codes[0])
    dialog.get_by_role("button", name="Turn off").click()
    expect(page.locator("#browsers")).to_contain_text("No trusted browsers")


def test_all_browsers_are_trusted_no_more(page: Page, site: Site) -> None:
    site.configure(auth_mfa_trusted_device_secs=MONTH)
    now = site.rt.clock.now()
    with site.rt.transaction() as session:
        for number in range(3):
            browsers.add(
                session,
                user_id=site.ada.id,
                digest=f"digest {number}",
                name="Firefox on Windows",
                first_seen_at=now,
                last_seen_at=now,
                remembered_at=now,
                remembered_until=now + timedelta(days=30),
            )
    open_as(page, site.ada, "/settings/profile")
    eventually(lambda: told(page, "/auth/mfa/devices"), "the setting")
    page.goto("/settings/security")
    expect(page.locator("#browsers tbody tr")).to_have_count(3)
    page.locator("#browsers").get_by_role("button", name="Stop trusting all").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop trusting all").click()
    expect(page.get_by_text("3 browsers are no longer trusted.")).to_be_visible()
    expect(page.locator("#browsers")).to_contain_text("No trusted browsers")
    expect(page.locator("#browsers-title")).to_be_focused()
