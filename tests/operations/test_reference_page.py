"""The reference page in a real browser, on the service as bin/serve runs it."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.support import images
from tests.support.launcher import Service

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PASSWORD = "a first password"
NEW_PASSWORD = "a second password"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(180),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the PATH"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[str]:
    """The address of a service that nobody has used yet."""
    service = Service(tmp_path / "instance")
    service.start()
    yield f"http://localhost:{service.port}"
    service.close()


@pytest.fixture
def page(chromium: Browser, origin: str) -> Iterator[Page]:
    """The reference page; the test fails when it complains or speaks to anybody else."""
    complaints: list[str] = []
    hosts: set[str] = set()
    page = chromium.new_page()
    page.on("console", lambda entry: entry.type == "error" and complaints.append(entry.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.goto(f"{origin}/api/v1/docs")
    yield page
    page.close()
    assert complaints == []
    # Pictures inside a style sheet are data and have no host.
    assert hosts - {""} == {urlsplit(origin).netloc}


class Step:
    """One step of the panel, as its reader sees it."""

    def __init__(self, page: Page, title: str) -> None:
        heading = page.get_by_role("heading", name=title, exact=True)
        self.node = page.locator("li.step").filter(has=heading)
        self.said = self.node.locator(".said")
        self.answer = self.node.get_by_label("Answer")
        self.request = self.node.get_by_label("Request")

    def press(self, name: str) -> None:
        self.node.get_by_role("button", name=name, exact=True).click()

    def fill(self, label: str, value: str) -> None:
        self.field(label).fill(value)

    def field(self, label: str) -> Locator:
        return self.node.get_by_label(label, exact=True)

    def says(self, words: str) -> None:
        expect(self.said).to_contain_text(words)


def set_up_and_sign_in(page: Page) -> None:
    check = Step(page, "Look at the state")
    check.press("Check")
    check.says("The installation is empty")
    expect(check.answer).to_contain_text('"needs_admin"')
    check.press("Next: Create the first administrator")
    setup = Step(page, "Create the first administrator")
    setup.fill("Password", PASSWORD)
    setup.press("Create")
    setup.says("admin is the administrator")
    expect(setup.request).not_to_contain_text(PASSWORD)
    setup.press("Next: Sign in")
    login = Step(page, "Sign in")
    expect(login.field("Username or e-mail")).to_have_value("admin")
    login.press("Sign in")
    login.says("Signed in.")
    expect(page.locator("#account")).to_have_text("Signed in")


def test_a_first_session_can_be_walked_through_to_its_end(page: Page) -> None:
    set_up_and_sign_in(page)
    login = Step(page, "Sign in")
    login.press("Sign in")  # a second session, to end one
    expect(login.request).to_contain_text("X-CSRF-Token")
    login.press("Next: Who am I?")

    me = Step(page, "Who am I?")
    me.press("Ask")
    me.says("You are admin, role admin.")
    expect(me.answer).to_contain_text("admin@example.com")
    me.press("Next: Refresh the tokens")
    refresh = Step(page, "Refresh the tokens")
    refresh.press("Refresh")
    refresh.says("A new pair of tokens")
    refresh.press("Next: See and end sessions")

    sessions = Step(page, "See and end sessions")
    sessions.press("List")
    sessions.says("2 sessions.")
    sessions.press("Revoke the session of HeadlessChrome")
    sessions.says("The session is over.")
    expect(sessions.node.locator("tbody tr")).to_have_count(1)
    sessions.press("Next: Change the password")

    password = Step(page, "Change the password")
    expect(password.field("Current password")).to_have_value(PASSWORD)
    password.fill("New password", NEW_PASSWORD)
    password.press("Change")
    password.says("Changed.")
    password.press("Next: Sign out")
    logout = Step(page, "Sign out")
    logout.press("Sign out")
    logout.says("Signed out.")
    expect(page.locator("#account")).to_have_text("Signed out")
    expect(page.locator(".progress")).to_have_text("8 of 8 steps done")


def test_the_steps_can_be_taken_with_the_keyboard_alone(page: Page) -> None:
    page.get_by_role("button", name="Check", exact=True).focus()
    page.keyboard.press("Enter")
    Step(page, "Look at the state").says("The installation is empty")
    page.keyboard.press("Tab")  # request and answer come after the button that leads on
    page.keyboard.press("Enter")
    expect(Step(page, "Create the first administrator").field("Password")).to_be_focused()
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    Step(page, "Create the first administrator").says("admin is the administrator")


def test_operations_can_be_tried_with_the_cookies_of_the_session(page: Page) -> None:
    set_up_and_sign_in(page)
    operation = page.locator("#operations-Profile-profile_me_get")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table .response")
    expect(answer.locator(".response-col_status")).to_contain_text("200")
    expect(answer).to_contain_text("admin@example.com")


def test_a_change_tried_on_the_page_carries_the_csrf_token(page: Page) -> None:
    set_up_and_sign_in(page)
    operation = page.locator("#operations-Sessions-sessions_logout_post")
    operation.locator(".opblock-summary-control").click()
    with page.expect_request("**/auth/logout") as sent:
        operation.get_by_role("button", name="Execute").click()
    assert re.fullmatch(r"[\w-]{20,}", sent.value.headers["x-csrf-token"])
    expect(operation.locator(".live-responses-table .response-col_status").nth(1)).to_contain_text(
        "200"
    )
    expect(page.locator("#account")).to_have_text("Signed out")


def test_a_picture_can_be_uploaded_and_is_shown(page: Page) -> None:
    set_up_and_sign_in(page)
    upload = page.locator("#operations-Avatars-avatars_upload_post")
    upload.locator(".opblock-summary-control").click()
    picture = images.encoded(images.quarters(), "GIF")
    upload.locator("input[type=file]").set_input_files(
        {"name": "me.gif", "mimeType": "image/gif", "buffer": picture}
    )
    upload.get_by_role("button", name="Execute").click()
    expect(upload.locator(".live-responses-table .response").first).to_contain_text(
        '"applied": true'
    )

    show = page.locator("#operations-Avatars-avatars_show_get")
    show.locator(".opblock-summary-control").click()
    show.get_by_placeholder("size").fill("512")
    show.get_by_role("button", name="Execute").click()
    shown = show.locator(".live-responses-table img")
    expect(shown).to_be_visible()
    assert shown.evaluate("img => img.decode().then(() => img.naturalWidth)") == 512
