"""Signing in on the page /login with a code by e-mail, on a phone."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.challenge import give_totp, wrong
from tests.support.launcher import eventually
from tests.support.mailbox import text_of
from tests.support.pages import Site, is_signed_in
from tests.support.smtp import HOST, RecordingSmtpServer

pytestmark = needs_chromium

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def next_code(site: Site, page: Page) -> Iterator[Callable[[], str]]:
    """Codes sign in; what returns the code of the next mail."""
    page.set_viewport_size(PHONE)
    with RecordingSmtpServer() as server:
        site.configure(
            mail_smtp_host=HOST,
            mail_smtp_port=server.port,
            mail_from_address="files@files.example",
            mail_security=False,
            mail_outbox_dispatch_interval_secs=1,
            auth_email_code_sign_in_enabled=True,
            auth_email_code_login_resend_cooldown_secs=2,
        )
        site.follows('id="email-code"')
        seen: list[str] = []

        def codes() -> list[str]:
            texts = "\n".join(text_of(mail.message) for mail in [*server.received])
            return re.findall(r"^\d{8}$", texts, re.MULTILINE)

        def read() -> str:
            [code] = eventually(lambda: codes()[len(seen) :], "a mail with a code")
            seen.append(code)
            return code

        yield read


def ask(page: Page, email: str) -> None:
    """Ask for a code on the sign-in page."""
    page.get_by_role("button", name="Sign in with a code by e-mail").click()
    field = page.get_by_label("E-mail address")
    expect(field).to_be_focused()
    field.fill(email)
    page.get_by_role("button", name="Send the code").click()
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_visible()


def enter(page: Page, code: str) -> None:
    page.get_by_label("Code from the e-mail").fill(code)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_wrong_code_is_said_at_its_field_and_the_right_one_signs_in(
    page: Page, site: Site, next_code: Callable[[], str], complaints: Complaints
) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    ask(page, site.ada.email)
    field = page.get_by_label("Code from the e-mail")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("autocomplete", "one-time-code")
    expect(page.get_by_text(site.ada.email)).to_be_visible()
    code = next_code()
    enter(page, wrong(code))
    expect(field).to_have_accessible_description(
        "This code is not right. Enter the one from the newest e-mail."
    )
    expect(field).to_have_value("")
    complaints.take_refusal(401)
    enter(page, f"{code[:4]} {code[4:]}")
    is_signed_in(page, site.ada)


def test_another_code_can_be_sent_and_the_newest_counts(
    page: Page, site: Site, next_code: Callable[[], str], complaints: Complaints
) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    ask(page, site.ada.email)
    first = next_code()
    page.get_by_role("button", name="Send again", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Enter the newest one.")
    second = next_code()
    enter(page, first)
    expect(page.get_by_label("Code from the e-mail")).to_have_value("")
    complaints.take_refusal(401)
    enter(page, second)
    is_signed_in(page, site.ada)


def test_a_look_into_the_mailbox_that_costs_the_page_loses_nothing(
    page: Page, site: Site, next_code: Callable[[], str]
) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    ask(page, site.ada.email)
    code = next_code()
    page.reload()
    expect(page.get_by_text(site.ada.email)).to_be_visible()
    enter(page, code)
    is_signed_in(page, site.ada)


def test_the_address_can_be_changed_and_other_ways_are_one_click_away(
    page: Page, site: Site, next_code: Callable[[], str]
) -> None:
    page.goto("/login")
    page.get_by_label("Username or e-mail").fill("typed@example.com")
    page.get_by_role("button", name="Sign in with a code by e-mail").click()
    expect(page.get_by_label("E-mail address")).to_have_value("typed@example.com")
    page.get_by_role("button", name="Send the code").click()
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_label("E-mail address")).to_have_value("typed@example.com")
    page.get_by_role("button", name="Other ways to sign in").click()
    expect(page.get_by_label("Username or e-mail")).to_have_value("typed@example.com")
    page.reload()
    expect(page.get_by_label("Username or e-mail")).to_be_visible()


def test_after_five_wrong_codes_another_is_one_click_away(
    page: Page, site: Site, next_code: Callable[[], str], complaints: Complaints
) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    ask(page, site.ada.email)
    code = next_code()
    for _ in range(4):
        enter(page, wrong(code))
        expect(page.get_by_label("Code from the e-mail")).to_have_value("")
        complaints.take_refusal(401)
    enter(page, wrong(code))
    expect(page.get_by_role("alert")).to_have_text("Too many wrong codes.")
    expect(page.get_by_label("E-mail address")).to_have_value(site.ada.email)
    complaints.take_refusal(401)


def test_an_authenticator_app_is_asked_for_next(
    page: Page, site: Site, next_code: Callable[[], str]
) -> None:
    factors = give_totp(site.rt, site.ada)
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    ask(page, site.ada.email)
    enter(page, next_code())
    expect(page.get_by_label("Code from your authenticator app")).to_be_focused()
    expect(page.get_by_role("radio")).to_have_count(2)
    page.get_by_role("textbox").fill(factors.app.code())
    page.get_by_role("button", name="Continue").click()
    is_signed_in(page, site.ada)


def test_it_is_there_while_passwords_and_passkeys_are_off(
    page: Page, site: Site, provider: object, next_code: Callable[[], str]
) -> None:
    site.configure(auth_password_login_enabled=False, auth_passkey_login_enabled=False)
    site.follows('id="password-form"', is_there=False)
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    button = page.get_by_role("button", name="Sign in with a code by e-mail")
    expect(button).to_have_class(re.compile("primary"))
    ask(page, site.ada.email)
    enter(page, next_code())
    is_signed_in(page, site.ada)
