"""Signing in with a passkey on the page /login: by its button, and from the field's suggestions."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error, Page, Route, expect

from app.passkeys import queries
from tests.support.browser import CHROMIUM, FLAGS, Complaints, needs_chromium
from tests.support.pages import (
    Site,
    is_drawn,
    is_ready,
    is_signed_in,
    make_passkey,
    opened,
    sign_in,
    sign_in_by_api,
)
from tests.support.smtp import Authority
from tests.support.tls_front import TlsFront
from tests.support.virtual_authenticator import VirtualAuthenticator

pytestmark = needs_chromium

BUTTON = "Sign in with a passkey"
START = "**/passkeys/login/start"
# Tells on the page what the browser was asked for.
TELL_MEDIATION = """
const get = CredentialsContainer.prototype.get;
CredentialsContainer.prototype.get = function (options) {
  document.documentElement.dataset.mediation = options.mediation ?? "required";
  return get.call(this, options);
};
"""
# As browsers have it before WebAuthn Level 3.
WITHOUT_JSON = """
delete PublicKeyCredential.parseCreationOptionsFromJSON;
delete PublicKeyCredential.parseRequestOptionsFromJSON;
delete PublicKeyCredential.prototype.toJSON;
"""


@pytest.fixture
def device(page: Page, site: Site) -> VirtualAuthenticator:
    return with_passkey(page, site)


def with_passkey(page: Page, site: Site) -> VirtualAuthenticator:
    """A device with a passkey of `ada`, who is signed out and does not touch it."""
    device = VirtualAuthenticator(page)
    page.goto("/register")
    is_ready(page)
    sign_in_by_api(page, site.ada)
    make_passkey(page)
    page.context.clear_cookies()
    device.withhold_presence()
    return device


def open_page(page: Page) -> None:
    """Open it, and wait until passkeys are offered in the field."""
    page.add_init_script(TELL_MEDIATION)
    page.goto("/login")
    expect(page.locator("html")).to_have_attribute("data-mediation", "conditional")


def touch_later(page: Page, device: VirtualAuthenticator) -> None:
    """Touch the device as soon as the page begins anew: what waits before that is not touched."""

    def touch(route: Route) -> None:
        device.grant_presence()
        route.continue_()

    page.route(START, touch)


def press_button(page: Page, device: VirtualAuthenticator) -> None:
    """Press it; the device is touched when the request for suggestions has ended."""
    touch_later(page, device)
    page.get_by_role("button", name=BUTTON).click()


def test_the_button_signs_in(page: Page, site: Site, device: VirtualAuthenticator) -> None:
    """It also ends the request for suggestions, since a browser runs one at a time."""
    open_page(page)
    press_button(page, device)
    is_signed_in(page, site.ada)


def test_suggestions_that_come_late_do_not_end_what_the_button_began(
    page: Page, site: Site, device: VirtualAuthenticator
) -> None:
    held: list[Route] = []
    page.route(START, lambda route: held.append(route))
    with page.expect_request(START):
        page.goto("/login")
    button = page.locator("#passkey")
    with page.expect_request(START):
        button.click()
    of_suggestions, of_button = held
    for route in (of_button, of_suggestions):
        with page.expect_response(START):
            route.continue_()
    page.wait_for_load_state("networkidle")
    expect(button).to_have_text("Waiting for your passkey…")


def test_a_suggestion_signs_in(page: Page, site: Site, device: VirtualAuthenticator) -> None:
    device.grant_presence()
    page.goto("/login")
    is_signed_in(page, site.ada)


def test_a_password_can_be_typed_while_passkeys_are_offered(
    page: Page, site: Site, device: VirtualAuthenticator, complaints: Complaints
) -> None:
    """And they are offered again after a wrong one."""
    open_page(page)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    is_drawn(page)
    page.context.clear_cookies()
    open_page(page)

    def refuse(route: Route) -> None:
        device.grant_presence()  # after the first request for suggestions has ended
        route.continue_()

    page.route("**/auth/login", refuse)
    with page.expect_response(START):
        sign_in(page, site.ada, "a wrong password")
    complaints.take_refusal(401)
    is_signed_in(page, site.ada)


def test_a_challenge_that_grows_old_is_renewed(page: Page, site: Site) -> None:
    device = with_passkey(page, site)
    page.clock.install()
    open_page(page)
    touch_later(page, device)
    with page.expect_response(START):
        page.clock.fast_forward(241_000)
    is_signed_in(page, site.ada)


def test_a_passkey_that_is_unknown_here_is_not_accepted(
    page: Page, site: Site, device: VirtualAuthenticator, complaints: Complaints
) -> None:
    with site.rt.transaction() as session:
        queries.remove_all(session, site.ada.id)
    open_page(page)
    press_button(page, device)
    expect(page.get_by_role("alert")).to_have_text("This passkey was not accepted.")
    complaints.take_refusal(401)


def test_a_cancelled_request_says_nothing(page: Page, site: Site) -> None:
    page.goto("/login")
    device = VirtualAuthenticator(page)
    device.fail_user_verification()
    page.get_by_role("button", name=BUTTON).click()
    expect(page.get_by_role("button", name=BUTTON)).to_be_enabled()
    expect(page.get_by_role("alert")).to_be_hidden()


def test_at_an_address_without_a_name_there_is_no_button_but_a_link(
    chromium: Browser, site: Site, complaints: Complaints
) -> None:
    with opened(chromium, site.numeric_origin, complaints, site.origin) as page:
        page.goto("/login?signed_out=1")
        expect(page.get_by_text("This service is meant to be opened at")).to_be_visible()
        expect(page.get_by_role("button", name=BUTTON)).to_be_hidden()
        page.get_by_role("link", name=site.origin).click()
        expect(page.get_by_role("button", name=BUTTON)).to_be_visible()
        page.wait_for_url(f"{site.origin}/login?signed_out=1")


def test_while_the_site_has_no_address_no_passkeys_are_offered(page: Page, site: Site) -> None:
    site.configure(public_site_url=[])
    site.follows('data-origin=""')
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/login")
    page.wait_for_load_state("networkidle")
    assert not [url for url in asked if "passkeys" in url]


def test_a_browser_without_json_methods_is_helped(page: Page, site: Site) -> None:
    page.add_init_script(WITHOUT_JSON)
    VirtualAuthenticator(page)
    page.goto("/register")
    is_ready(page)
    sign_in_by_api(page, site.ada)
    make_passkey(page)
    with pytest.raises(Error, match="exists"):
        make_passkey(page)
    page.context.clear_cookies()
    page.goto("/login")
    is_signed_in(page, site.ada)


def test_hosts_below_the_first_address_share_its_passkeys(
    chromium: Browser, site: Site, complaints: Complaints, tmp_path: Path
) -> None:
    """The browser would have them used on any of them, the service on its own addresses alone."""
    first, second, other = (f"https://{name}example.com" for name in ("", "cloud.", "other."))
    site.configure(public_site_url=[first, second])
    tls = Authority(tmp_path).server("example.com")
    with TlsFront(tls, urlsplit(site.origin).port or 0) as front:
        rules = f"--host-resolver-rules=MAP *example.com:443 127.0.0.1:{front.port}"
        start = chromium.browser_type.launch
        with (
            start(executable_path=CHROMIUM, args=[*FLAGS, rules]) as browser,
            opened(browser, first, complaints, second, other, ignore_https_errors=True) as page,
        ):
            # Of the relay in front: it has hung up on a connection that Chromium had kept.
            complaints.forgive("net::ERR_TOO_MANY_RETRIES")
            device = VirtualAuthenticator(page)
            page.goto("/login")
            sign_in(page, site.ada)
            is_signed_in(page, site.ada)
            make_passkey(page)
            assert [one["rpId"] for one in device.passkeys] == ["example.com"]
            page.goto(f"{second}/login")
            is_signed_in(page, site.ada)
            with page.expect_response(START) as refused:
                page.goto(f"{other}/login")
            assert refused.value.json()["code"] == "auth.request_origin_untrusted"
            complaints.take_refusal(403)
