"""The second step of a sign-in on the page /login."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.authenticator import EnabledTotp
from tests.support.browser import Complaints, needs_chromium
from tests.support.challenge import give_totp
from tests.support.launcher import eventually
from tests.support.mailbox import text_of
from tests.support.pages import Site, is_signed_in, sign_in
from tests.support.smtp import HOST, RecordingSmtpServer

pytestmark = needs_chromium


@pytest.fixture
def factors(page: Page, site: Site) -> EnabledTotp:
    """The authenticator app and recovery codes of `ada`, whose password is typed already."""
    factors = give_totp(site.rt, site.ada)
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    sign_in(page, site.ada)
    expect(page.get_by_role("heading", name="Second step")).to_be_visible()
    return factors


def enter(page: Page, code: str) -> None:
    page.get_by_role("textbox").fill(code)
    page.get_by_role("button", name="Continue").click()


def test_a_code_of_the_app_signs_in_and_a_wrong_one_is_said_at_its_field(
    page: Page, site: Site, factors: EnabledTotp, complaints: Complaints
) -> None:
    field = page.get_by_label("Code from your authenticator app")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("autocomplete", "one-time-code")
    enter(page, factors.app.wrong_code())
    expect(field).to_have_accessible_description(
        "This code is not right. Codes change every 30 seconds. "
        "The six digits that your app shows now."
    )
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    complaints.take_refusal(401)
    code = factors.app.code(1)
    enter(page, f" {code[:3]} {code[3:]} ")
    is_signed_in(page, site.ada)


def test_a_recovery_code_signs_in(page: Page, site: Site, factors: EnabledTotp) -> None:
    page.get_by_role("radio", name="Recovery code").check()
    expect(page.get_by_label("Recovery code", exact=True).last).to_have_attribute(
        "autocomplete", "off"
    )
    enter(page, factors.recovery_codes[0])
    is_signed_in(page, site.ada)


def test_a_code_from_a_mail_signs_in(page: Page, site: Site, factors: EnabledTotp) -> None:
    with RecordingSmtpServer() as server:
        site.configure(
            mail_smtp_host=HOST,
            mail_smtp_port=server.port,
            mail_from_address="files@files.example",
            mail_security=False,
            auth_email_code_login_enabled=True,
            auth_email_code_login_allow_totp_fallback=True,
        )
        login = {"identifier": "ada", "password": site.ada.password}
        eventually(lambda: "email_code" in site.post("/auth/login", login)["methods"], "the way")
        page.reload()
        sign_in(page, site.ada)
        page.get_by_role("radio", name="E-mail").check()
        page.get_by_role("button", name="Send code").click()
        field = page.get_by_label("Code from the e-mail")
        expect(field).to_be_focused()
        texts = "\n".join(text_of(mail.message) for mail in server.received)
        [code] = re.findall(r"\b\d{8}\b", texts)
        enter(page, code)
        is_signed_in(page, site.ada)


def test_after_five_wrong_codes_the_sign_in_begins_anew(
    page: Page, factors: EnabledTotp, complaints: Complaints
) -> None:
    for _ in range(4):
        enter(page, factors.app.wrong_code())
        expect(page.get_by_role("textbox")).to_have_value("")
    enter(page, factors.app.wrong_code())
    expect(page.get_by_role("alert")).to_have_text("Too many wrong codes.")
    for text in [*complaints.texts]:
        assert "responded with a status of 401 " in text
        complaints.texts.remove(text)
    page.get_by_role("button", name="Start over").click()
    expect(page.get_by_label("Username or e-mail")).to_be_visible()
    expect(page).to_have_url(re.compile("return_path"))


def test_a_provider_leads_straight_to_the_second_step(page: Page, site: Site) -> None:
    """The flow is taken out of the address before anything else is loaded."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.headers.get("referer", "")))
    page.goto("/login?mfa=required&flow=mfa_abc&expires_in=300&methods=recovery_code,totp,sms")
    expect(page.get_by_label("Recovery code", exact=True).last).to_be_focused()
    assert page.get_by_role("radio").count() == 2
    expect(page).not_to_have_url(re.compile("flow"))
    assert not [url for url in asked if "mfa_abc" in url]


def test_the_time_for_a_code_ends(page: Page, site: Site) -> None:
    page.clock.install()
    page.goto("/login?mfa=required&flow=mfa_abc&expires_in=300&methods=totp")
    expect(page.get_by_label("Code from your authenticator app")).to_be_focused()
    page.clock.fast_forward(241_000)
    expect(page.get_by_role("alert")).to_have_text("One minute is left to enter a code.")
    expect(page.get_by_label("Code from your authenticator app")).to_be_focused()
    page.clock.fast_forward(60_000)
    expect(page.get_by_role("alert")).to_have_text("Too much time has passed.")
    expect(page.get_by_role("button", name="Start over")).to_be_visible()


def test_a_second_step_that_a_provider_led_to_survives_a_load(page: Page, site: Site) -> None:
    page.goto("/login?mfa=required&flow=a-flow&expires_in=200&methods=totp,email_code")
    for _ in range(2):
        expect(page.get_by_role("radio")).to_have_count(2)
        assert page.evaluate("location.search") == "?mfa=required"
        page.reload()
    page.get_by_role("button", name="Start over").click()
    expect(page.get_by_label("Username or e-mail")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Username or e-mail")).to_be_visible()
