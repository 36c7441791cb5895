"""The dialog in which an owner confirms to be the owner, on a page that has a call to make."""

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.challenge import give_totp
from tests.support.pages import (
    Site,
    answered,
    demand_confirmation,
    is_signed_in,
    make_passkey,
    open_as,
    sign_in,
)
from tests.support.virtual_authenticator import VirtualAuthenticator

pytestmark = needs_chromium

WHY = "To add a passkey"
# No page of the pages has such a call yet; `outcome` is what its caller gets.
ASK = """(why) => {
  window.outcome = Promise.all([window.module("confirm"), window.module("api")]).then(
    ([{ asOwner }, { call }]) =>
      asOwner(why, () => call("post", "/auth/passkeys/register/start", { body: {} }))
    ).then((data) => data && Object.keys(data).length > 0, (error) => error.code);
}"""


@pytest.fixture
def device(page: Page, site: Site) -> VirtualAuthenticator:
    """The device of `ada`, who is signed in."""
    device = VirtualAuthenticator(page)
    open_as(page, site.ada, "/settings/profile")
    return device


def ask(page: Page, site: Site, complaints: Complaints) -> None:
    """Make the call an hour after the sign-in."""
    demand_confirmation(page, site)
    page.evaluate(ASK, WHY)
    dialog = page.get_by_role("dialog", name="Confirm that it is you")
    expect(dialog).to_contain_text(WHY)
    complaints.take_refusal(412)


def test_whoever_cancels_makes_no_call_and_the_password_confirms(
    page: Page, site: Site, device: VirtualAuthenticator, complaints: Complaints
) -> None:
    ask(page, site, complaints)
    page.keyboard.press("Escape")
    assert page.evaluate("outcome") is None
    is_signed_in(page, site.ada)
    ask(page, site, complaints)
    field = page.get_by_role("dialog").get_by_label("Your password")
    expect(field).to_be_focused()
    field.fill("a wrong password")
    field.press("Enter")
    expect(field).to_have_accessible_description(
        "The password is wrong, or the passkey was not accepted."
    )
    complaints.take_refusal(401)
    field.fill(site.ada.password)
    field.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("outcome") is True
    # With a passkey, that is offered first.
    make_passkey(page)
    ask(page, site, complaints)
    button = page.get_by_role("button", name="Use a passkey")
    expect(button).to_be_focused()
    button.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("outcome") is True


def test_with_a_second_factor_its_code_is_asked_for_as_well(
    page: Page, site: Site, complaints: Complaints
) -> None:
    factors = give_totp(site.rt, site.ada)
    page.goto("/login")
    sign_in(page, site.ada)
    page.get_by_label("Code from your authenticator app").fill(factors.app.code(1))
    page.get_by_role("button", name="Continue").click()
    is_signed_in(page, site.ada)
    ask(page, site, complaints)
    expect(page.get_by_role("button", name="Send code by e-mail")).to_have_count(0)
    page.get_by_label("Your password").fill(site.ada.password)
    page.get_by_label("Code", exact=True).fill(factors.app.wrong_code())
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_label("Code", exact=True)).to_have_accessible_description(
        "This code is not right. Codes change every 30 seconds."
    )
    complaints.take_refusal(401)
    page.get_by_label("Code", exact=True).fill(factors.recovery_codes[0])
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("outcome") is True


WAYS = {"is_fresh": False, "expires_in": 0, "required_for_changes": True, "needs_code": False}


def test_an_account_without_a_password_gets_a_code_by_mail(
    page: Page, site: Site, device: VirtualAuthenticator, complaints: Complaints
) -> None:
    demand_confirmation(page, site)
    answered(page, "**/auth/confirmation", 200, "success", WAYS | {"methods": ["email_code"]})
    sent = {"expires_in": 600, "resend_after": 60}
    answered(page, "**/email-code/send", 200, "success", sent)
    page.evaluate(ASK, WHY)
    page.get_by_role("button", name="Send code by e-mail").click()
    complaints.take_refusal(412)
    field = page.get_by_label("Code", exact=True)
    expect(field).to_be_focused()
    again = page.get_by_role("button", name="Send again in")
    expect(again).to_have_attribute("aria-disabled", "true")
    field.fill("123456")
    with page.expect_request(lambda request: request.method == "POST") as posted:
        field.press("Enter")
    assert posted.value.post_data_json == {"method": "email_code", "code": "123456"}
    assert page.evaluate("outcome") == "precondition_failed"
    complaints.take_refusal(412)
