"""What the page /login says of where somebody comes from, and of what is possible now."""

from urllib.parse import urlencode

from playwright.sync_api import Page, Route, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.challenge import give_totp
from tests.support.pages import (
    Site,
    fill,
    is_drawn,
    is_ready,
    is_signed_in,
    send,
    sign_in,
)

pytestmark = needs_chromium

USED = "The link has already been used or is not valid."


FAILED = "The other service did not complete the sign-in."
SAID: list[tuple[dict[str, str], str]] = [
    ({"contact_verification": "register-activated"}, "Your account is active."),
    (
        {"contact_verification": "email-changed", "email": "<b>new</b>@example.com"},
        "Your address is now <b>new</b>@example.com.",
    ),
    ({"contact_verification": "missing"}, "The link is incomplete."),
    ({"contact_verification": "invalid"}, USED),
    ({"contact_verification": "expired"}, "The link has expired."),
    ({"external_auth": "error"}, FAILED),
    (
        {"external_auth": "error", "code": "external_auth.policy_denied"},
        "This account may not sign in here.",
    ),
    ({"external_auth": "error", "code": "<script>"}, FAILED),
    ({"external_auth": "error", "code": "auth.credentials_failed"}, FAILED),
    ({"external_auth": "email_verification_expired"}, "The link has expired."),
    ({"signed_out": "1"}, "You are signed out."),
    ({"reset": "1"}, "Your password has been changed."),
    ({"deleted": "1"}, "Your account has been deleted."),
    ({"contact_verification": "you won"}, ""),
    ({"external_auth": "call me"}, ""),
    ({"signed_out": "yes"}, ""),
    ({"code": "x", "email": "y"}, ""),
]


def test_an_outcome_is_said_above_the_form_and_nothing_else_of_the_address(
    page: Page, site: Site
) -> None:
    page.goto("/login")
    is_ready(page)
    show = """async (query) => {
        document.getElementById("notes").replaceChildren();
        const { showOutcome } = await window.module("../signin/outcomes");
        showOutcome(new URLSearchParams(query));
        return document.getElementById("notes").innerText;
    }"""
    for query, said in SAID:
        found = page.evaluate(show, urlencode(query))
        assert said in found if said else found == "", query
    # As it is opened, and then the form still signs in.
    page.goto(f"/login?{urlencode(SAID[1][0])}")
    expect(page.get_by_role("status")).to_contain_text(SAID[1][1])
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)


def test_who_was_led_here_can_sign_in_before_it_is_said_why(page: Page, site: Site) -> None:
    page.route("**/signin/outcomes.js", lambda _: None)
    page.goto("/login?reset=1")
    is_ready(page)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)


def test_what_arrives_late_disturbs_no_later_step(page: Page, site: Site) -> None:
    app = give_totp(site.rt, site.ada).app
    held: list[Route] = []
    page.route("**/signin/outcomes.js", lambda route: held.append(route))
    page.goto("/login?reset=1")
    is_ready(page)
    sign_in(page, site.ada)
    code = page.get_by_label("Code from your authenticator app")
    expect(code).to_be_focused()
    with page.expect_request_finished(lambda request: request.url.endswith("/providers")):
        held[0].continue_()
    expect(page.get_by_role("alert").filter(has_text="went wrong")).to_have_count(0)
    code.fill(app.code(1))
    page.get_by_role("button", name="Continue").click()
    is_signed_in(page, site.ada)


def test_a_link_that_was_used_can_be_replaced(page: Page, site: Site) -> None:
    site.configure(auth_register_activation_enabled="true")
    site.add("bob", activated=False, verified=False)
    page.goto("/login?contact_verification=expired")
    page.get_by_role("button", name="Send a new e-mail").click()
    expect(page.get_by_label("Username or e-mail")).to_be_focused()
    page.get_by_label("Username or e-mail").fill("bob")
    page.get_by_role("button", name="Send a new e-mail").click()
    expect(page.get_by_role("alert")).to_contain_text("another e-mail is on its way")


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
    expect(page.get_by_role("alert")).to_contain_text("another e-mail is on its way")
    page.get_by_role("button", name="Use another account").click()
    name = page.get_by_label("Username or e-mail")
    expect(name).to_be_focused()
    expect(name).to_have_value("bob")
    # With an address it says where the mail went; the password is typed again.
    expect(page.get_by_label("Password", exact=True)).to_have_value("")
    fill(page, identifier=bob.email, password=bob.password)
    send(page)
    expect(page.get_by_text(bob.email)).to_be_visible()
    complaints.take_refusal(403)
    page.get_by_role("button", name="Change it").click()
    expect(name).to_have_value(bob.email)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)


def test_a_way_that_is_switched_off_meanwhile_is_said(
    page: Page, site: Site, complaints: Complaints
) -> None:
    page.goto("/login")
    site.configure(auth_password_login_enabled=False)
    site.follows("data-no-passwords")
    sign_in(page, site.ada)
    expect(page.get_by_role("alert")).to_contain_text(
        "Sign-in with a password is switched off here."
    )
    complaints.take_refusal(403)
    page.get_by_role("button", name="Show the current options").click()
    expect(page.get_by_label("Password", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_visible()
    # And when there is no way in, that is said.
    page.route("**/auth/check", lambda route: route.fulfill(json=nothing(route)))
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("Nobody can sign in at the moment.")


def nothing(route) -> dict:
    answer = route.fetch().json()
    answer["data"] |= {"password_login_enabled": False, "passkey_login_enabled": False}
    return answer


def test_an_account_decides_where_and_how_it_goes_on(page: Page, site: Site) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    sign_in(page, site.add("eve", must_change_password=True))
    page.wait_for_url("**/force-password-change?return_path=%2Fsettings%2Fprofile")
    expect(page.get_by_text("Not eve?")).to_be_visible()
    page.context.clear_cookies()
    preferences = '{"language": "de-AT", "theme_mode": "dark"}'
    page.goto("/login")
    sign_in(page, site.add("eva", preferences=preferences))
    page.wait_for_url("**/settings/profile")
    expect(page.locator("html[lang=de][data-theme=dark]")).to_be_attached()
    is_drawn(page)


def test_a_browser_that_keeps_no_cookies_is_told_so(page: Page, site: Site) -> None:
    page.route("**/auth/login", lambda route: route.fulfill(json=route.fetch().json()))
    page.goto("/login")
    page.evaluate("Object.defineProperty(document, 'cookie', { get: () => '' })")
    sign_in(page, site.ada)
    expect(page.get_by_role("alert")).to_contain_text("Your browser did not keep you signed in.")
