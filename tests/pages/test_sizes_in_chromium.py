"""How much a browser loads for a page, at first and when it comes back."""

import pytest
from playwright.sync_api import Browser, Page

from bench.scenarios.pages import KILOBYTE, Traffic
from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import Site, opened, sign_in_by_api

pytestmark = needs_chromium


def _loaded(page: Page, traffic: Traffic) -> list[tuple[str, int]]:
    page.wait_for_load_state("networkidle")
    return traffic.take()


def test_the_sign_in_page_is_small(page: Page, site: Site) -> None:
    traffic = Traffic(page)
    page.goto("/login")
    loaded = _loaded(page, traffic)
    assert len(loaded) <= 24, loaded
    assert sum(size for _, size in loaded) <= 45 * KILOBYTE, loaded
    page.reload()
    again = _loaded(page, traffic)
    assert len(again) <= 5, again
    own = [size for url, size in again if "/api/v1/" not in url]
    assert sum(own) <= 8 * KILOBYTE, again


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
        loaded = _loaded(page, traffic)
        assert len(loaded) <= files, loaded
        assert sum(size for _, size in loaded) <= kilobytes * KILOBYTE, loaded
        page.reload()
        again = _loaded(page, traffic)
        assert len(again) <= 8, again
        own = [size for url, size in again if "/api/v1/" not in url]
        assert sum(own) <= 8 * KILOBYTE, again


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
