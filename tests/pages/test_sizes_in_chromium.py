"""How much a browser loads for a page, at first and when it comes back."""

import pytest
from playwright.sync_api import Page

from bench.scenarios.pages import KILOBYTE, Traffic
from tests.support.browser import needs_chromium
from tests.support.pages import Site, sign_in_by_api

pytestmark = needs_chromium


def _loaded(page: Page, traffic: Traffic) -> list[tuple[str, int]]:
    page.wait_for_load_state("networkidle")
    return traffic.take()


def is_small(page: Page, path: str, files: int, kilobytes: int, again: int) -> None:
    """Load a page for the first time, and then once more."""
    traffic = Traffic(page)
    page.goto(path)
    loaded = _loaded(page, traffic)
    assert len(loaded) <= files, loaded
    assert sum(size for _, size in loaded) <= kilobytes * KILOBYTE, loaded
    page.reload()
    back = _loaded(page, traffic)
    assert len(back) <= again, back
    own = [size for url, size in back if "/api/v1/" not in url]
    assert sum(own) <= 8 * KILOBYTE, back


def test_the_sign_in_page_is_small_and_nothing_moves(page: Page, site: Site) -> None:
    page.add_init_script(
        """window.shifts = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shifts += entry.value;
        }).observe({ type: "layout-shift", buffered: true });"""
    )
    is_small(page, "/login", 24, 45, 5)
    assert page.evaluate("window.shifts") <= 0.02


@pytest.mark.parametrize(
    ("path", "files", "kilobytes"), [("/settings/security", 44, 80), ("/admin/users", 42, 110)]
)
def test_a_page_of_a_console_is_small(
    page: Page, site: Site, path: str, files: int, kilobytes: int
) -> None:
    sign_in_by_api(page, site.ada)
    is_small(page, path, files, kilobytes, 8)
