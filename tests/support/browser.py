"""The system's Chromium, and what its pages complain of."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, ConsoleMessage, expect, sync_playwright

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

needs_chromium = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the PATH"),
]


class Complaints:
    """Errors on a page's console; tests take away those of refusals they expect."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._forgiven: list[str] = []

    def note(self, entry: ConsoleMessage) -> None:
        is_forgiven = any(words in entry.text for words in self._forgiven)
        if entry.type == "error" and not is_forgiven:
            self.texts.append(entry.text)

    def forgive(self, words: str = "Failed to load resource") -> None:
        """Drop the lines with these words, also those that are still on their way."""
        self._forgiven.append(words)
        self.texts = [text for text in self.texts if words not in text]

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
