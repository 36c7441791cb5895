"""Signing in with a passkey on the page /login: by its button, and from the field's suggestions."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from fido2 import cbor
from playwright.sync_api import APIResponse, Browser, Error, Page, Route, expect

from app.passkeys import queries
from app.passkeys.models import Passkey
from tests.support.browser import CHROMIUM, FLAGS, Complaints, needs_chromium
from tests.support.launcher import eventually
from tests.support.pages import (
    Site,
    answered,
    demand_confirmation,
    fill,
    is_drawn,
    is_ready,
    is_signed_in,
    make_passkey,
    open_as,
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
FINISH = "**/passkeys/login/finish"
# Notes what the browser is told, also by pages that are left at once.
TELL_SIGNALS = """
for (const name of ["signalAllAcceptedCredentials", "signalCurrentUserDetails"]) {
  const tell = PublicKeyCredential[name];
  PublicKeyCredential[name] = (options) => {
    const told = JSON.parse(sessionStorage.getItem("signals") ?? "[]");
    sessionStorage.setItem("signals", JSON.stringify([...told, [name, options]]));
    return tell.call(PublicKeyCredential, options);
  };
}
"""
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


def test_while_the_site_has_no_address_nothing_is_asked_of_passkeys(page: Page, site: Site) -> None:
    site.configure(public_site_url=[])
    site.follows('data-origin=""')
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/login")
    is_ready(page)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    assert not [url for url in asked if "/auth/passkeys" in url]


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


# --- what the browser is told of passkeys ---------------------------------------------------------


def not_listed(page: Page, site: Site) -> None:
    site.configure(public_site_url=["http://localhost:5173"])
    site.follows('data-origin="http://localhost:5173"')


def counter_fell_back(page: Page, site: Site) -> None:
    _change_passkeys(site, sign_count=1_000_000)


def kind_changed(page: Page, site: Site) -> None:
    _change_passkeys(site, backup_eligible=True)


def another_key(page: Page, site: Site) -> None:
    with site.rt.reading() as session:
        [known] = session.scalars(sa.select(Passkey))
    key = cbor.decode(known.public_key)
    _change_passkeys(site, public_key=cbor.encode(key | {-2: key[-3], -3: key[-2]}))


def disabled(page: Page, site: Site) -> None:
    site.change(site.ada, status="disabled")


def not_activated(page: Page, site: Site) -> None:
    site.change(site.ada, activated_at=None)


def switched_off(page: Page, site: Site) -> None:
    page.route(FINISH, lambda route: (_switch_off(site), route.continue_()))


def too_late(page: Page, site: Site) -> None:
    page.route(FINISH, lambda route: (_forget_flows(site), route.continue_()))


def of_nobody_by_a_foreign_answer(page: Page, site: Site) -> None:
    """As a proxy, or another version of the service, may answer."""
    answered(page, FINISH, 401, "auth.credentials_failed")


def _change_passkeys(site: Site, **columns: Any) -> None:
    with site.rt.transaction() as session:
        session.execute(sa.update(Passkey).values(**columns))


def _switch_off(site: Site) -> None:
    site.configure(auth_passkey_login_enabled=False)
    site.follows('id="passkey"', is_there=False)


def _forget_flows(site: Site) -> None:
    for key in site.rt.redis.client.scan_iter("gatehouse:passkey:*"):
        site.rt.redis.client.delete(key)


REFUSALS = [
    not_listed,
    counter_fell_back,
    kind_changed,
    another_key,
    disabled,
    not_activated,
    switched_off,
    too_late,
    of_nobody_by_a_foreign_answer,
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one.__name__)
def test_a_passkey_that_is_refused_may_work_later_and_is_kept(
    page: Page, site: Site, device: VirtualAuthenticator, complaints: Complaints, refusal: Any
) -> None:
    complaints.forgive()
    refusal(page, site)
    open_page(page)
    with page.expect_response(FINISH) as finished:
        press_button(page, device)
    assert finished.value.status in (401, 403)
    expect(page.get_by_role("alert").filter(has_text=re.compile("."))).to_be_visible()
    assert len(device.passkeys) == 1


def test_a_passkey_that_nobody_has_is_hidden(
    page: Page, site: Site, device: VirtualAuthenticator, complaints: Complaints
) -> None:
    with site.rt.transaction() as session:
        queries.remove_all(session, site.ada.id)
    open_page(page)
    press_button(page, device)
    expect(page.get_by_role("alert")).to_have_text("This passkey was not accepted.")
    complaints.take_refusal(401)
    eventually(lambda: device.passkeys == [], "the browser to hide it")


def test_a_confirmation_hides_what_nobody_has_and_keeps_what_is_refused(
    page: Page, site: Site, complaints: Complaints
) -> None:
    complaints.forgive()
    device = VirtualAuthenticator(page)
    open_as(page, site.ada, "/settings/security")
    make_passkey(page)
    demand_confirmation(page, site)
    confirm = page.get_by_role("dialog").get_by_role("button", name="Use a passkey")
    counter_fell_back(page, site)
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_role("button", name="Continue", exact=True).click()
    confirm.click()
    alert = page.get_by_role("dialog").get_by_role("alert").filter(has_text="was not accepted")
    expect(alert).to_be_visible()
    assert len(device.passkeys) == 1

    def remove(route: Route) -> None:
        with site.rt.transaction() as session:
            queries.remove_all(session, site.ada.id)
        route.continue_()

    page.route("**/confirmation/passkey/finish", remove)
    with page.expect_response("**/confirmation/passkey/finish"):
        confirm.click()
    eventually(lambda: device.passkeys == [], "the browser to hide it")


def test_the_browser_is_told_of_all_passkeys_and_names(
    page: Page, site: Site, device: VirtualAuthenticator
) -> None:
    """After a sign-in, and after each change; the last one's removal, too."""
    page.add_init_script(TELL_SIGNALS)
    open_page(page)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    [kept] = device.passkeys
    known = {"userId": urlsafe(kept["userHandle"]), "rpId": "localhost"}
    ids = [urlsafe(kept["credentialId"])]
    names = {"name": "ada", "displayName": site.ada.email.partition("@")[0]}
    told = [
        ["signalAllAcceptedCredentials", known | {"allAcceptedCredentialIds": ids}],
        ["signalCurrentUserDetails", known | names],
    ]
    signals = "() => JSON.parse(sessionStorage.getItem('signals') ?? '[]')"
    assert page.evaluate(signals) == told
    page.goto("/settings/security")
    page.get_by_role("button", name="Rename").click()
    fill(page, name="Laptop")
    page.get_by_role("button", name="Save").click()
    eventually(lambda: page.evaluate(signals) == told * 2, "the browser to be told")
    site.change(site.ada, email="new@example.com")
    page.goto("/settings/security?contact_verification=email-changed")
    told[1][1] = known | {"name": "ada", "displayName": "new"}
    eventually(lambda: page.evaluate(signals)[-2:] == told, "the browser to be told")
    page.get_by_role("button", name="Delete: Laptop").click()
    page.get_by_role("button", name="Delete passkey").click()
    told[0][1] = known | {"allAcceptedCredentialIds": []}
    eventually(lambda: page.evaluate(signals)[-2:] == told, "the browser to be told")
    eventually(lambda: device.passkeys == [], "the browser to hide it")


def test_a_list_from_before_a_passkey_does_not_remove_it(page: Page, site: Site) -> None:
    """Browsers remove what is not listed; here the answer is under way while one is made."""
    first = VirtualAuthenticator(page)
    page.add_init_script(TELL_SIGNALS)
    open_as(page, site.ada, "/settings/security")
    make_passkey(page)
    first.remove()
    device = VirtualAuthenticator(page)
    page.reload()
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route("**/auth/passkeys/signal", hold)
    with page.expect_request("**/auth/passkeys/signal"):
        rename(page, "Passkey", "Phone")
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_role("button", name="Continue", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("The passkey has been added.")
    [(route, answer)] = held
    with page.expect_response("**/auth/passkeys/signal"):
        route.fulfill(response=answer)
    rename(page, "Phone", "Old phone")
    signals = "() => JSON.parse(sessionStorage.getItem('signals') ?? '[]')"
    eventually(lambda: len(page.evaluate(signals)) >= 4, "the browser to be told twice")
    lists = [told.get("allAcceptedCredentialIds") for _, told in page.evaluate(signals)]
    assert [len(ids) for ids in lists if ids] == [2, 2]
    assert len(device.passkeys) == 1


def rename(page: Page, before: str, after: str) -> None:
    page.get_by_role("button", name=f"Rename: {before}", exact=True).click()
    fill(page, name=after)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name=f"Rename: {after}", exact=True)).to_be_visible()


def urlsafe(base64: str) -> str:
    """Return base64 as DevTools tells it in the alphabet of WebAuthn."""
    return base64.replace("+", "-").replace("/", "_").rstrip("=")
