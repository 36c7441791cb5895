"""Signing in on the reference page with a second factor: of an app, by mail, from the paper."""

import json
import re
from pathlib import Path

import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import PASSWORD, Complaints, Step, needs_chromium
from tests.support.launcher import Service
from tests.support.mailbox import text_of
from tests.support.smtp import HOST, RecordingSmtpServer

pytestmark = needs_chromium
ADMIN = {"username": "admin", "email": "admin@example.com", "password": PASSWORD}


class SecondFactor:
    """What the account holds."""

    def __init__(self, page: Page, origin: str, service: Service) -> None:
        service.post("/api/v1/auth/setup", **ADMIN)
        auth = f"{origin}/api/v1/auth"
        browser = page.request
        browser.post(f"{auth}/login", data={"identifier": "admin", "password": PASSWORD})
        started = browser.post(f"{auth}/mfa/totp/setup/start").json()["data"]
        self.app = pyotp.TOTP(started["secret"])
        body = {"flow_token": started["flow_token"], "code": self.app.now()}
        enabled = browser.post(f"{auth}/mfa/totp/setup/finish", data=body).json()["data"]
        self.recovery_codes: list[str] = enabled["recovery_codes"]
        page.context.clear_cookies()


@pytest.fixture
def factor(page: Page, origin: str, service: Service) -> SecondFactor:
    return SecondFactor(page, origin, service)


def give_the_password(page: Page, title: str = "Sign in") -> Step:
    login = Step(page, title)
    login.open()
    login.fill("Username or e-mail", "admin")
    login.fill("Password", PASSWORD)
    login.press("Sign in")
    login.says("nobody is signed in yet")
    return login


def test_the_password_alone_is_half_of_the_step(
    page: Page, factor: SecondFactor, complaints: Complaints
) -> None:
    login = give_the_password(page)
    expect(login.node).to_have_attribute("data-state", "halfway")
    expect(login.node.get_by_role("button", name="Next: Who am I?")).to_have_count(0)
    expect(page.locator("#account")).to_have_text("Signed out")
    methods = login.field("Second factor").locator("option")
    assert methods.all_text_contents() == ["Authenticator app", "Recovery code"]
    expect(login.node.get_by_role("button", name="Send a code by e-mail")).to_be_hidden()

    expect(login.field("Code")).to_be_focused()
    login.fill("Code", "no code")
    login.press("Verify")
    login.says("Refused with auth.mfa_code_invalid")
    complaints.take_refusal(401)
    login.fill("Code", factor.app.now())
    page.keyboard.press("Enter")
    login.says("Signed in.")
    expect(login.node).to_have_attribute("data-state", "done")
    expect(login.field("Code")).to_have_count(0)
    expect(page.locator("#account")).to_have_text("Signed in")
    login.press("Next: Who am I?")


def test_a_recovery_code_signs_in_wherever_a_panel_begins(page: Page, factor: SecondFactor) -> None:
    login = give_the_password(page, "Sign in with the password")
    login.field("Second factor").select_option("recovery_code")
    login.fill("Code", factor.recovery_codes[0])
    login.press("Verify")
    login.says("Signed in.")
    expect(login.request).not_to_contain_text(factor.recovery_codes[0])
    login.press("Next: Create a passkey")


def test_too_many_wrong_codes_lead_back_to_the_password(
    page: Page, factor: SecondFactor, complaints: Complaints
) -> None:
    login = give_the_password(page)
    for code in ("auth.mfa_code_invalid",) * 4 + ("auth.mfa_attempts_exceeded",):
        login.fill("Code", "no code")
        login.press("Verify")
        login.says(f"Refused with {code}")
        complaints.take_refusal(401)
        expect(login.answer).to_contain_text(code)
    expect(login.field("Code")).to_have_count(0)
    give_the_password(page, "Sign in to listen")


def test_a_code_comes_by_mail(
    page: Page, factor: SecondFactor, service: Service, tmp_path: Path
) -> None:
    with RecordingSmtpServer() as server:
        settings = {
            "mail_smtp_host": HOST,
            "mail_smtp_port": server.port,
            "mail_from_address": "files@files.example",
            "mail_security": False,
            "auth_email_code_login_enabled": True,
            "auth_email_code_login_allow_totp_fallback": True,
        }
        file = tmp_path / "settings.json"
        file.write_text(json.dumps(settings))
        service.flask("config", "import", str(file))
        login = give_the_password(page)
        login.field("Second factor").select_option("email_code")
        login.press("Send a code by e-mail")
        login.says("A code is on its way by e-mail")
        expect(login.node).to_have_attribute("data-state", "halfway")
        # Another mail says that the ways to sign in have changed.
        mails = [mail for mail in server.received if "admin@example.com" in mail.recipients]
        (code,) = re.findall(r"\b\d{8}\b", "\n".join(text_of(mail.message) for mail in mails))
        login.fill("Code", code)
        login.press("Verify")
        login.says("Signed in.")
