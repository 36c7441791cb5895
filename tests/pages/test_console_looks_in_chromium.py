"""Both consoles with long texts, large letters and forced colours, section by section."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.pages.registry import PAGES
from tests.support import factories, outbox
from tests.support.browser import Complaints, needs_chromium
from tests.support.fake_provider import FakeProvider
from tests.support.pages import (
    Site,
    ask,
    barriers,
    is_drawn,
    misfits,
    open_as,
    opened,
    pale_in_the_dark,
    stretch_texts,
    style,
)

pytestmark = needs_chromium

PHONE = {"width": 390, "height": 844}
# What people and programs named, and what the browser itself writes.
DATA = re.compile(
    r"\S+@\S+|Engineers|Local login|Local storage|Default Policy Group|Gatehouse|Chrome|Linux"
    r"|Passkey|\bada\b|\blocal\b|public_site_url|/favicon.svg"
    r"|\bUTC\b|\bbytes\b|\b\d+ seconds\b|\bin \d+ \w+\b|\b\d+ \w+ ago\b|\b[AP]M\b"
    r"|\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b"
)
# What is shown but in elements whose words are the service's, a person's, or the browser's.
WORDS = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const { data, parentElement: node, previousSibling: previous } = walk.currentNode;
    const isOf = node.closest(":not(html)[lang=en], .preview, time, code, .mono, option, textarea");
    if (isOf || !node.checkVisibility()) continue;
    // Lines may end within a name.
    if (previous?.nodeName === "WBR") found.push(found.pop() + data);
    else found.push(data);
  }
  return found;
}"""
HEIGHT = "(one) => one.getBoundingClientRect().height"
# Controls that have no line around them, and those whose focus has none.
UNSEEN = """() => {
  const found = [];
  const sides = ["Top", "Right", "Bottom", "Left"];
  for (const node of document.querySelectorAll("a, button, summary, input, select, textarea")) {
    if (!node.checkVisibility() || node.matches(".skip-link *, .skip-link, :disabled")) continue;
    node.focus();
    const style = getComputedStyle(node);
    const hasLine = sides.some((side) => parseFloat(style[`border${side}Width`]) > 0 &&
      style[`border${side}Color`] !== style.backgroundColor);
    const isText = ["A", "SUMMARY"].includes(node.tagName) || node.type === "checkbox";
    const hasRing = style.outlineStyle !== "none" && style.outlineWidth === "2px";
    if (!hasRing) found.push(`focus: ${node.outerHTML.slice(0, 200)}`);
    const needsLine = !isText || node.matches(".button, .switch");
    if (needsLine && !hasLine) found.push(`line: ${node.outerHTML.slice(0, 200)}`);
  }
  return found;
}"""


@pytest.fixture
def console(
    chromium: Browser, site: Site, complaints: Complaints, provider: FakeProvider
) -> Iterator[Page]:
    """A page of an administrator whose installation has one of everything, and long lists."""
    site.flask("invitations", "create", "eve@example.com")
    factories.add_many(site.rt, 51)
    outbox.queue(site.rt)
    factories.add_passkeys(site.rt, site.ada, 1)
    with opened(chromium, site.origin, complaints, reduced_motion="reduce") as page:
        open_as(page, site.ada, "/settings/profile")
        yield page
        # The whole browser says so when the preview of a mail keeps a script from running.
        others = [text for text in complaints.texts if not text.startswith("Blocked script")]
        complaints.texts = others


def sections(page: Page, site: Site, paths: list[str]) -> Iterator[str]:
    """Open sections of the consoles, one after the other."""
    team = ask(page, "/admin/teams", {"name": "Engineers", "admin_identifier": "ada"})
    ids = {"users": str(site.ada.id), "teams": str(team["id"])}
    for path in paths:
        filled = path.replace("<key>", "local").replace("<template>", "password_reset")
        filled = filled.replace("<category>", "mail.config")
        filled = re.sub(r"(\w+)/<int:id>", lambda match: f"{match[1]}/{ids[match[1]]}", filled)
        page.goto(filled)
        is_drawn(page)
        yield filled


@pytest.mark.parametrize("section", ["account", "admin"])
def test_everybody_can_use_every_section_however_long_its_texts(
    console: Page, site: Site, section: str
) -> None:
    """Every text is one of the catalogue."""
    stretch_texts(console)
    found = {}
    for path in sections(console, site, [page.path for page in PAGES if page.section == section]):
        words = DATA.sub("", " ".join(console.evaluate(WORDS)))
        # A word of the catalogue that has a vowel has an accent.
        faults = re.findall(r"\b(?=[a-z]*[aeiou])[a-z]{2,}\b", words, re.IGNORECASE)
        for width, zoom in ((640, 200), (390, 100)):
            faults += misfits(console, width, zoom=zoom)
        for width in (320, 1280):
            faults += misfits(console, width) + barriers(console)
        faults += pale_in_the_dark(console)
        faults += console.evaluate("window.policyReports")
        if faults:
            found[path] = faults
    assert found == {}


def test_with_forced_colours_controls_focus_and_places_are_seen(console: Page, site: Site) -> None:
    """In the sections that have every kind of control between them."""
    console.emulate_media(forced_colors="active")
    paths = ["/settings/preferences", "/settings/security", "/admin/users", "/admin/settings"]
    for path in sections(console, site, [*paths, "/admin/external-auth/<key>"]):
        console.keyboard.press("Tab")  # or the focus would not be shown
        assert console.evaluate(UNSEEN) == [], path
        console.evaluate("document.activeElement.blur()")
        for current in console.locator("main [aria-current], .side [aria-current]").all():
            other = current.locator("xpath=../a[not(@aria-current)]").first
            assert style(current, "outlineStyle") != style(other, "outlineStyle"), path
        for switch in console.locator(".switch").all()[:1]:
            assert knob(switch) != style(switch, "backgroundColor")
            switch.evaluate("(one) => { one.checked = !one.checked; }")
            assert knob(switch) != style(switch, "backgroundColor")


def knob(switch: Locator) -> str:
    """Return the colour of the part of a switch that moves."""
    found: str = switch.evaluate("(one) => getComputedStyle(one, '::before').backgroundColor")
    return found


def test_headings_of_a_table_that_is_cards_are_seen_while_they_have_the_focus(
    console: Page, site: Site
) -> None:
    console.set_viewport_size(PHONE)
    console.goto("/admin/users")
    is_drawn(console)
    expect(console.get_by_role("checkbox", name="Select all on this page")).to_be_visible()
    head = console.locator("thead th:not(.select)").first
    assert head.evaluate(HEIGHT) <= 1
    console.locator("thead button").first.focus()
    assert head.evaluate(HEIGHT) >= 24
    console.keyboard.press("Enter")
    expect(console.locator("[aria-sort=ascending]")).to_be_visible()
    assert misfits(console, PHONE["width"]) == []
