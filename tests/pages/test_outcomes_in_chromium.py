"""What the page /login says of where somebody comes from, and of what is possible now."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import Site, is_ready, is_signed_in, sign_in

pytestmark = needs_chromium

USED = "The link was used before or is not valid."


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"contact_verification": "register-activated"}, "Your account is active."),
        (
            {"contact_verification": "email-changed", "email": "<b>new</b>@example.com"},
            "Your address is now <b>new</b>@example.com.",
        ),
        ({"contact_verification": "missing"}, "The link is incomplete."),
        ({"contact_verification": "invalid"}, USED),
        ({"contact_verification": "expired"}, "The link is too old."),
        ({"external_auth": "error"}, "The other service did not complete the sign-in."),
        (
            {"external_auth": "error", "code": "external_auth.policy_denied"},
            "This account may not sign in here.",
        ),
        (
            {"external_auth": "error", "code": "<script>"},
            "The other service did not complete the sign-in.",
        ),
        (
            {"external_auth": "error", "code": "auth.credentials_failed"},
            "The other service did not complete the sign-in.",
        ),
        ({"external_auth": "email_verification_expired"}, "The link is too old."),
        ({"signed_out": "1"}, "You are signed out."),
        ({"reset": "1"}, "Your password is changed."),
        ({"deleted": "1"}, "Your account is deleted."),
    ],
)
def test_an_outcome_is_said_above_the_form(
    page: Page, site: Site, query: dict[str, str], said: str
) -> None:
    page.goto(f"/login?{urlencode(query)}")
    expect(page.get_by_role("status")).to_contain_text(said)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)


@pytest.mark.parametrize(
    "query",
    ["contact_verification=you+won", "external_auth=call+me", "signed_out=yes", "code=x&email=y"],
)
def test_nothing_else_in_the_address_is_said(page: Page, site: Site, query: str) -> None:
    page.goto(f"/login?{query}")
    page.wait_for_load_state("networkidle")
    assert page.locator("#notes").inner_text() == ""


def test_a_link_that_was_used_can_be_replaced(page: Page, site: Site) -> None:
    site.configure(auth_register_activation_enabled="true")
    site.add("bob", activated=False, verified=False)
    page.goto("/login?contact_verification=expired")
    page.get_by_role("button", name="Send a new mail").click()
    expect(page.get_by_label("Username or e-mail")).to_be_focused()
    page.get_by_label("Username or e-mail").fill("bob")
    page.get_by_role("button", name="Send a new mail").click()
    expect(page.get_by_role("alert")).to_contain_text("another mail is on its way")


def test_an_account_that_waits_for_its_mail_can_ask_for_another(
    page: Page, site: Site, complaints: Complaints
) -> None:
    site.configure(auth_register_activation_enabled="true")
    bob = site.add("bob", activated=False, verified=False)
    page.goto("/login")
    sign_in(page, bob)
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()
    complaints.take_refusal(403)
    page.get_by_role("button", name="Send it again").click()
    expect(page.get_by_role("alert")).to_contain_text("another mail is on its way")
    page.get_by_role("button", name="Use another account").click()
    is_ready(page)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)


def test_a_way_that_is_switched_off_meanwhile_is_said(
    page: Page, site: Site, complaints: Complaints
) -> None:
    page.goto("/login")
    site.configure(auth_password_login_enabled=False)
    sign_in(page, site.ada)
    expect(page.get_by_role("alert")).to_contain_text(
        "Sign-in with a password is switched off here."
    )
    complaints.take_refusal(403)
    page.get_by_role("button", name="Show the current options").click()
    expect(page.get_by_label("Password", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_visible()


def test_when_there_is_no_way_in_it_says_so(page: Page, site: Site) -> None:
    site.configure(auth_password_login_enabled=False)
    page.route("**/auth/check", lambda route: route.fulfill(json=nothing(route)))
    page.goto("/login")
    expect(page.get_by_role("alert")).to_contain_text("Nobody can sign in at the moment.")


def nothing(route) -> dict:
    answer = route.fetch().json()
    answer["data"] |= {"password_login_enabled": False, "passkey_login_enabled": False}
    return answer


def test_a_forced_new_password_comes_first(page: Page, site: Site) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    sign_in(page, site.add("eve", must_change_password=True))
    page.wait_for_url("**/force-password-change?return_path=%2Fsettings%2Fprofile")


def test_pages_look_as_the_account_prefers_from_the_sign_in_on(page: Page, site: Site) -> None:
    preferences = '{"language": "de-AT", "theme_mode": "dark"}'
    page.goto("/login")
    sign_in(page, site.add("eva", preferences=preferences))
    page.wait_for_url("**/settings/profile")
    expect(page.locator("html[lang=de][data-theme=dark]")).to_be_attached()


def test_a_browser_that_keeps_no_cookies_is_told_so(page: Page, site: Site) -> None:
    page.route("**/auth/login", lambda route: route.fulfill(json=route.fetch().json()))
    page.goto("/login")
    page.evaluate("Object.defineProperty(document, 'cookie', { get: () => '' })")
    sign_in(page, site.ada)
    expect(page.get_by_role("alert")).to_contain_text("Your browser did not keep the sign-in.")
