"""Every state of the pages is accessible, as far as a program can tell, and fits small screens."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support import npm
from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import (
    SMALL,
    Site,
    answered,
    barriers_of,
    is_signed_in,
    opened,
    sign_in,
)

pytestmark = needs_chromium

CHALLENGE = {
    "status": "mfa_required",
    "flow_token": "mfa_1",
    "expires_in": 300,
    "methods": ["totp", "recovery_code", "email_code"],
}
PROVIDERS = [
    {"key": "acme", "kind": "generic_oidc", "display_name": "Acme <b>Corp</b>", "icon_url": None},
    {"key": "long", "kind": "generic_oidc", "display_name": "Long" * 30, "icon_url": None},
]


def form(page: Page, site: Site) -> None:
    answered(page, "**/external-auth/providers", 200, "success", PROVIDERS)
    page.goto("/login?contact_verification=invalid&signed_out=1")
    expect(page.get_by_role("button", name="Continue with Acme <b>Corp</b>")).to_be_visible()


def empty_fields(page: Page, site: Site) -> None:
    page.goto("/login")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_text("Enter your password.")).to_be_visible()


def fault(page: Page, site: Site) -> None:
    answered(page, "**/auth/login", 500, "internal_server_error", **{"X-Request-ID": "a" * 36})
    page.goto("/login")
    sign_in(page, site.ada)
    page.get_by_text("Details", exact=True).click()
    expect(page.get_by_text("a" * 36)).to_be_visible()


def limit(page: Page, site: Site) -> None:
    answered(page, "**/auth/login", 429, "rate_limited", **{"Retry-After": "90"})
    page.goto("/login")
    sign_in(page, site.ada)
    expect(page.get_by_role("alert")).to_contain_text("Try again in 1:")


def second_step(page: Page, site: Site) -> None:
    answered(page, "**/auth/login", 200, "success", CHALLENGE)
    page.goto("/login")
    sign_in(page, site.ada)
    page.get_by_role("radio", name="E-mail").check()
    expect(page.get_by_role("button", name="Send code")).to_be_visible()


def pending(page: Page, site: Site) -> None:
    answered(page, "**/auth/login", 403, "auth.pending_activation")
    page.goto("/login")
    sign_in(page, site.ada)
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()


def unknown_identity(page: Page, site: Site) -> None:
    page.goto("/login?external_auth=email_required&flow=oev_1")
    page.get_by_role("radio", name="I have no account").check()
    expect(page.get_by_label("E-mail address")).to_be_visible()


def signed_in_already(page: Page, site: Site) -> None:
    page.goto("/login")
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    page.goto("/login")
    expect(page.get_by_role("link", name="Continue")).to_be_visible()


def profile(page: Page, site: Site) -> None:
    page.goto("/login")
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)


def security(page: Page, site: Site) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fsecurity%3Fcontact_verification%3Dexpired")
    sign_in(page, site.ada)
    expect(page.get_by_text("The link is too old.")).to_be_visible()
    expect(page.locator("#address").get_by_text("ada@example.com")).to_be_visible()


def missing(page: Page, site: Site) -> None:
    page.goto("/settings/nothing")
    expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()


STATES = [
    form, empty_fields, fault, limit, second_step, pending, unknown_identity, signed_in_already,
    profile, security, missing,
]  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_no_barrier_is_found_and_nothing_is_wider_than_the_screen(
    chromium: Browser, site: Site, state: Callable[[Page, Site], None]
) -> None:
    try:
        found = barriers_of(chromium, site, state)
    except npm.Missing as reason:
        pytest.skip(f"no axe-core: {reason}")
    assert found == {"light": [], "dark": []}


def test_the_keyboard_alone_signs_in(page: Page, site: Site) -> None:
    page.goto("/login")
    page.wait_for_load_state("networkidle")
    names = []
    for _ in range(8):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        names.append(focused.get_attribute("id") or focused.inner_text() or "reveal")
        if names[-1] == "identifier":
            page.keyboard.type(site.ada.username)
        if names[-1] == "password":
            page.keyboard.type(site.ada.password)
        assert focused.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    assert names == [
        "Skip to the content", "Gatehouse", "identifier", "password", "reveal", "Forgot password?",
        "Sign in", "passkey",
    ]  # fmt: skip
    page.locator("#password").press("Enter")
    is_signed_in(page, site.ada)


@pytest.mark.parametrize("language", ["de", "zh-CN"])
@pytest.mark.parametrize("path", ["/login", "/settings/nothing"])
def test_every_language_fits_a_small_screen_with_large_letters(
    chromium: Browser, site: Site, language: str, path: str
) -> None:
    complaints = Complaints()
    with opened(chromium, site.origin, complaints, viewport={"width": 640, "height": 900}) as page:
        page.goto(f"{path}?lang={language}")
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        assert page.evaluate("document.documentElement.scrollWidth") == 640
        page.set_viewport_size(SMALL)
        page.evaluate("document.documentElement.style.fontSize = ''")
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        complaints.texts.clear()  # one of the pages says that there is none
