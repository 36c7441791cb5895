"""Every page in every language, on screens of every width: nothing scrolls sideways, no word is
broken inside, nothing lies on anything else or is cut off, everything can be read.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from app.pages.registry import PAGES
from app.settings.page_keys import LANGUAGES
from tests.support import company
from tests.support.browser import Complaints, needs_chromium
from tests.support.looks import flaws
from tests.support.pages import Site, barriers, is_drawn, misfits, opened, pale_in_the_dark

pytestmark = needs_chromium

WIDTHS = (320, 390, 768, 1280, 1920)
# The others lead on at once, unless something is to be done there; their states have a test.
LEADING_ON = ("/setup", "/setup/storage", "/force-password-change")
SECTIONS = {
    section: [one.path for one in PAGES if one.section == section and one.path not in LEADING_ON]
    for section in ("sign_in", "account", "admin")
}


@pytest.fixture
def lived_in(
    chromium: Browser, site: Site, complaints: Complaints
) -> Iterator[tuple[Page, dict[str, str]]]:
    complaints.forgive()  # an invitation that is unknown, a mail server that is not there
    with opened(chromium, site.origin, complaints) as page:
        yield page, company.settle(site, page)
        others = [text for text in complaints.texts if not text.startswith("Blocked script")]
        complaints.texts = others


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("section", SECTIONS)
def test_every_page_fits_every_screen(
    lived_in: tuple[Page, dict[str, str]], section: str, language: str
) -> None:
    page, ids = lived_in
    if section == "sign_in":
        page.context.clear_cookies()
    found = []
    for path in SECTIONS[section]:
        page.goto(f"{_filled(path, ids)}?lang={language}")
        is_drawn(page)
        faults = misfits(page, 320, zoom=200)
        for width in WIDTHS:
            faults += misfits(page, width)
            faults += [f"{width} px: {one}" for one in flaws(page)]
        faults += barriers(page) + pale_in_the_dark(page)
        found += [f"{path} {one}" for one in faults]
    assert not found, "\n".join(found)


def _filled(path: str, ids: dict[str, str]) -> str:
    """Put something that there is into the address of a page."""
    words = {"key": "company", "template": "password_reset", "category": "auth", "token": "none"}
    path = re.sub(r"/(user|team)s/<int:id>", lambda found: f"/{found[1]}s/{ids[found[1]]}", path)
    return re.sub(r"<(\w+)>", lambda found: words[found[1]], path)
