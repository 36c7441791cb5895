"""Links of mails, opened by the browser that asked, by a mail scanner, and on a phone."""

import pytest
from playwright.sync_api import Browser, Page, expect

from app.external_auth.models import Identity
from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import KnownUser, count
from tests.support.fake_provider import FakeProvider
from tests.support.oidc_provider import OidcProvider
from tests.support.pages import (
    Site,
    ask,
    barriers,
    fill,
    is_complete,
    is_signed_in,
    opened,
    send,
)

pytestmark = needs_chromium

BOB = KnownUser(2, "bob", "bob@example.com", "correct horse battery")
NEW = "a quite different one"


def scan(chromium: Browser, site: Site, path: str) -> None:
    """Open a link as a scanner does that has a browser of its own; run what scripts there are."""
    complaints = Complaints()
    complaints.forgive()
    with opened(chromium, site.origin, complaints) as page:
        for _ in range(2):
            page.goto(path)
            # The modules have begun, if there are any.
            expect(page.locator("#incomplete:not([hidden])")).to_have_count(0)
            page.wait_for_load_state("networkidle")  # and have asked what they ask
        assert page.context.cookies(f"{site.origin}/api/v1/auth") == []


@pytest.fixture
def silent(site: Site, certified_provider: OidcProvider) -> OidcProvider:
    """A certified provider, which tells no address of whoever is silent there."""
    words = ["external-auth", "add", "oidc", "--key", "silent", "--name", "Silent login"]
    words += ["--client-id", certified_provider.client_id, "--auto-provision"]
    words += [f"--client-secret={certified_provider.client_secret}"]
    site.flask(*words, "--issuer-url", certified_provider.issuer)
    return certified_provider


def ask_for(page: Page, silent: OidcProvider, address: str) -> None:
    """Sign in at the provider, and say that a mailbox is one's own."""
    page.goto("/login")
    body = {"return_path": "/settings/profile"}
    started = ask(page, "/auth/external-auth/oidc/silent/start", body)
    page.goto(silent.sign_in(started["authorization_url"], "silent-eve"))
    page.get_by_role("radio", name="I have no account").check()
    page.get_by_label("E-mail address").fill(address)
    page.get_by_role("button", name="Continue with this address").click()
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()


def test_a_scanner_hands_no_account_over_and_a_person_on_a_phone_gets_in(
    page: Page, chromium: Browser, site: Site, silent: OidcProvider
) -> None:
    ask_for(page, silent, site.ada.email)
    path = site.mailed()
    scan(chromium, site, path)
    assert count(site.rt, Identity) == 0
    with opened(chromium, site.origin, Complaints()) as phone:
        phone.set_viewport_size({"width": 390, "height": 844})
        phone.goto(path)
        expect(phone.get_by_role("heading", name="Is this you?")).to_be_visible()
        expect(phone.get_by_text(f"ada ({site.ada.email})")).to_be_visible()
        expect(phone.get_by_text("Silent-eve Example")).to_be_visible()
        assert barriers(phone) == []
        phone.get_by_role("button", name="That was not me").click()
        expect(phone.get_by_text("Nothing was connected")).to_be_visible()
        phone.goto(path)
        expect(phone.get_by_text("The link has already been used")).to_be_visible()
    ask_for(page, silent, site.ada.email)
    path = site.mailed()
    with opened(chromium, site.origin, Complaints()) as phone:
        phone.goto(path)
        phone.get_by_role("button", name="Yes, sign me in").click()
        is_signed_in(phone, site.ada)
    assert count(site.rt, Identity) == 1


def test_who_comes_by_a_provider_takes_over_what_a_stranger_registered(
    page: Page, chromium: Browser, site: Site, provider: FakeProvider, complaints: Complaints
) -> None:
    site.configure(auth_register_activation_enabled="true")
    site.flask("external-auth", "update", "local", "--auto-link")
    page.goto("/register")
    fill(page, username=BOB.username, email=BOB.email, password=BOB.password)
    send(page)
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()
    complaints.take_refusal(403)
    scan(chromium, site, site.mailed())
    provider.claims |= {"email": BOB.email, "email_verified": True}
    own = Complaints()
    with opened(chromium, site.origin, own, provider.issuer) as bobs:
        bobs.goto("/login?return_path=%2Fsettings%2Fprofile")
        bobs.get_by_role("button", name="Continue with Local login").click()
        bobs.get_by_role("radio", name="I have no account").check()
        bobs.get_by_label("E-mail address").fill(BOB.email)
        bobs.get_by_role("button", name="Continue with this address").click()
        refusal = bobs.get_by_role("alert").filter(has_text="nobody has ever confirmed it")
        expect(refusal).to_be_visible()
        own.take_refusal(403)
        bobs.get_by_role("link", name="Set a new password").click()
        bobs.wait_for_url("**/reset-password")
        is_complete(bobs)
        fill(bobs, email=BOB.email)
        send(bobs)
        bobs.goto(site.mailed())
        fill(bobs, new_password=NEW)
        send(bobs)
        bobs.wait_for_url("**/login?reset=1")
        bobs.goto("/login?return_path=%2Fsettings%2Fprofile")
        bobs.get_by_role("button", name="Continue with Local login").click()
        is_signed_in(bobs, BOB)
    assert count(site.rt, Identity) == 1
