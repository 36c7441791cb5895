"""How much a browser loads for a page, at first and when it comes back."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import Site, opened, sign_in_by_api

pytestmark = needs_chromium

KILOBYTE = 1000


class Traffic:
    """What a page has loaded since the last `take`."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._asked: dict[str, str] = {}
        self._bytes: dict[str, int] = {}
        devtools = page.context.new_cdp_session(page)
        devtools.on("Network.requestWillBeSent", self._note_request)
        devtools.on("Network.loadingFinished", self._note_end)
        devtools.send("Network.enable")

    def _note_request(self, event: Any) -> None:
        self._asked[event["requestId"]] = event["request"]["url"]

    def _note_end(self, event: Any) -> None:
        self._bytes[event["requestId"]] = int(event["encodedDataLength"])

    def take(self) -> dict[str, int]:
        """Return the bytes that came over the network by address, of what was not in a cache."""
        self._page.wait_for_load_state("networkidle")
        found = {url: self._bytes.get(id, 0) for id, url in self._asked.items()}
        self._asked.clear()
        # Without the icon, which belongs to a window's tab.
        return {url: size for url, size in found.items() if size and "icon.svg" not in url}


def test_the_sign_in_page_is_small(page: Page, site: Site) -> None:
    traffic = Traffic(page)
    page.goto("/login")
    loaded = traffic.take()
    assert len(loaded) <= 24, loaded
    assert sum(loaded.values()) <= 45 * KILOBYTE, loaded
    page.reload()
    again = traffic.take()
    own = {url: size for url, size in again.items() if "/api/v1/" not in url}
    assert len(again) <= 5, again
    assert sum(own.values()) <= 8 * KILOBYTE, own


@pytest.mark.parametrize(
    ("path", "files", "kilobytes"), [("/settings/security", 44, 80), ("/admin/users", 42, 110)]
)
def test_a_page_of_a_console_is_small(
    chromium: Browser, site: Site, complaints: Complaints, path: str, files: int, kilobytes: int
) -> None:
    with opened(chromium, site.origin, complaints) as page:
        sign_in_by_api(page, site.ada)
        traffic = Traffic(page)
        page.goto(path)
        loaded = traffic.take()
        assert len(loaded) <= files, loaded
        assert sum(loaded.values()) <= kilobytes * KILOBYTE, loaded
        page.reload()
        again = traffic.take()
        own = {url: size for url, size in again.items() if "/api/v1/" not in url}
        assert len(again) <= 8, again
        assert sum(own.values()) <= 8 * KILOBYTE, own


def test_nothing_moves_while_the_sign_in_page_is_loaded(page: Page, site: Site) -> None:
    page.add_init_script(
        """window.shifts = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shifts += entry.value;
        }).observe({ type: "layout-shift", buffered: true });"""
    )
    page.goto("/login")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.shifts") <= 0.02
