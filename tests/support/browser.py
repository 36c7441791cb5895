"""Drives the API reference page in the system's Chromium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright

# The shell without windows takes half the time of the whole browser.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
# A busy machine may need longer than Playwright's default of five seconds.
expect.set_options(timeout=30_000)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
DOCS = "/api/v1/docs"
PASSWORD = "a first password"

needs_chromium = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the PATH"),
]


class Complaints:
    """Errors on a page's console; tests take away those of refusals they expect."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, entry: ConsoleMessage) -> None:
        if entry.type == "error":
            self.texts.append(entry.text)

    def take_refusal(self, status: int) -> None:
        """Take away the one line that Chromium logs for a request refused with `status`."""
        lines = [text for text in self.texts if f"responded with a status of {status} " in text]
        assert len(lines) == 1, self.texts
        self.texts.remove(lines[0])


@contextmanager
def launched() -> Iterator[Browser]:
    """Run the browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()


@contextmanager
def reference_page(
    browser: Browser, origin: str, complaints: Complaints, *others: str
) -> Iterator[Page]:
    """Open the page; afterwards assert no console errors and no requests to foreign hosts.

    `others` are further origins it may contact.
    """
    hosts: set[str] = set()
    page = browser.new_page()
    page.on("console", complaints.note)
    page.on("pageerror", lambda error: complaints.texts.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.goto(origin + DOCS)
    yield page
    page.close()
    assert complaints.texts == []
    # Pictures inside a style sheet are data: URLs and have no host.
    assert hosts - {""} == {urlsplit(known).netloc for known in (origin, *others)}


class Step:
    """One step of a panel."""

    def __init__(self, page: Page, title: str) -> None:
        heading = page.get_by_role("heading", name=title, exact=True)
        self.node = page.locator("li.step").filter(has=heading)
        self.said = self.node.locator(".said")
        self.answer = self.node.get_by_label("Answer")
        self.request = self.node.get_by_label("Request")

    def open(self) -> None:
        """Unfold the step by a click on its summary."""
        self.node.locator("summary").click()

    def press(self, name: str) -> None:
        self.node.get_by_role("button", name=name, exact=True).click()

    def fill(self, label: str, value: str) -> None:
        self.field(label).fill(value)

    def field(self, label: str) -> Locator:
        return self.node.get_by_label(label, exact=True)

    def says(self, words: str) -> None:
        expect(self.said).to_contain_text(words)


def set_up_and_sign_in(page: Page) -> None:
    """Walk through the first steps of an empty installation, as admin with PASSWORD."""
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


def widths(page: Page) -> list[int]:
    """Return the page's width, and the rightmost edge of its content outside any scroller."""
    found: list[int] = page.evaluate(
        """() => {
            const scrolls = (node) => /auto|scroll/.test(getComputedStyle(node).overflowX);
            const inScroller = (node) =>
              node && (scrolls(node) || inScroller(node.parentElement));
            const nodes = [...document.querySelectorAll("main *")].filter((node) =>
              !inScroller(node.parentElement) && !node.closest(".visually-hidden"));
            const ends = nodes.map((node) => Math.ceil(node.getBoundingClientRect().right));
            return [document.documentElement.scrollWidth, Math.max(...ends)];
        }"""
    )
    return found
