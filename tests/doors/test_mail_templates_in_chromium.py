"""Every mail template: changed and previewed in the console, sent, and set back."""

from collections.abc import Iterator
from email.message import EmailMessage

import pytest
from playwright.sync_api import Page, expect

from app.core.runtime import Runtime
from app.mail import service as mail
from app.mail.previews import SAMPLES
from app.mail.templates import DESCRIPTIONS, Template
from app.settings import mail_keys
from tests.doors.findings import Findings
from tests.support.browser import needs_chromium
from tests.support.initial_state import InitialState
from tests.support.launcher import Service, eventually
from tests.support.mailbox import html_of
from tests.support.pages import Site, ask, is_drawn, open_as
from tests.support.smtp import HOST, RecordingSmtpServer

pytestmark = needs_chromium

RECIPIENT = "eve@example.com"
# What the samples of previews lack, since it depends on the installation.
MORE_SAMPLES = {
    "expires_in": "an hour",
    "good_for": "an hour",
    "invitation_url": "https://files.example.com/invite/SAMPLE-TOKEN",
    "browser": "Firefox on Windows",
    "lang": "en",
    "method": "password",
    "security_url": "https://files.example.com/settings/security",
    "signed_in_at": "29 November 2026, 09:41 UTC",
}


def open_template(page: Page, template: str) -> str:
    """Return the subject of the preview."""
    page.goto(f"/admin/mail/{template}")
    subject = page.locator(".preview-subject")
    expect(subject).not_to_be_empty()
    return subject.inner_text()


def change(page: Page, template: Template) -> None:
    """Set words of its own, with all variables that there are."""
    names = " ".join(f"{{{{{name}}}}}" for name in DESCRIPTIONS[template].variables)
    page.locator("[name=subject]").fill(f"Own {template} of {{{{site_name}}}}")
    if needed := mail_keys.MAILS[template].needs:
        page.locator("[name=html]").fill("<p>Words that lack something</p>")
        expect(page.locator(".preview .note")).to_contain_text(f"Missing: {{{{{needed}}}}}")
    page.locator("[name=html]").fill(f"<p>Words of {template}: {names}</p>")
    expect(page.frame_locator("iframe").get_by_text(f"Words of {template}:")).to_be_visible()
    expect(page.locator(".preview-subject")).to_have_text(subject_of(template))
    expect(page.locator(".preview .note")).to_have_count(0)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("button", name="Back to default", exact=True)).to_be_visible()


def send(page: Page, rt: Runtime, template: Template, server: RecordingSmtpServer) -> EmailMessage:
    """Have the service send a mail with the new words, which another worker may see a bit later."""
    values = SAMPLES | MORE_SAMPLES
    stored = {name: values[name] for name in DESCRIPTIONS[template].stored - {"site_name"}}

    def attempt() -> EmailMessage | None:
        with rt.transaction() as session:
            mail.queue(rt, session, template, RECIPIENT, expires_at=None, **stored)
        ask(page, "/admin/mail/outbox/flush")
        mails = [one.message for one in server.received]
        return next((one for one in mails if one["Subject"] == subject_of(template)), None)

    message: EmailMessage = eventually(attempt, "a mail with the new words", seconds=30)
    return message


def subject_of(template: Template) -> str:
    return f"Own {template} of Gatehouse"


def go_back(page: Page, built_in: str) -> None:
    page.get_by_role("button", name="Back to default", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Back to default", exact=True).click()
    expect(page.locator(".preview-subject")).to_have_text(built_in)
    expect(page.get_by_role("button", name="Back to default", exact=True)).to_have_count(0)


@pytest.fixture
def server(site: Site) -> Iterator[RecordingSmtpServer]:
    """The server that the service sends by."""
    with RecordingSmtpServer() as server:
        about = {"mail_smtp_host": HOST, "mail_smtp_port": server.port, "mail_security": False}
        site.configure(**about, mail_from_address="service@example.com")
        yield server


def test_every_template_is_changed_previewed_sent_and_returned_to_the_built_in_text(
    page: Page,
    site: Site,
    running: tuple[Service, InitialState, Runtime],
    server: RecordingSmtpServer,
) -> None:
    open_as(page, site.ada, "/admin/mail")
    is_drawn(page)
    links = page.locator("#templates a").evaluate_all("(all) => all.map((one) => one.pathname)")
    assert sorted(links) == sorted(f"/admin/mail/{template}" for template in Template)
    findings = Findings()
    for template in Template:
        with findings.about(template):
            built_in = open_template(page, template)
            change(page, template)
            message = send(page, running[0].runtime, template, server)
            assert f"Words of {template}:" in html_of(message)
            assert "{{" not in html_of(message)
            go_back(page, built_in)
    findings.are_none()


def test_the_buttons_of_the_outbox_send(
    page: Page, site: Site, server: RecordingSmtpServer
) -> None:
    open_as(page, site.ada, "/admin/mail")
    page.get_by_role("button", name="Send all now", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("0 waiting")
    page.locator("[name=target]").fill(RECIPIENT)
    page.get_by_role("button", name="Send test e-mail", exact=True).first.click()
    expect(page.locator(".toast").last).to_contain_text(RECIPIENT)
    assert server.recipients == [RECIPIENT]
