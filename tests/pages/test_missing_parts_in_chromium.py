"""Parts of a page that do not arrive: asked for once more, and then said, with a button."""

import pytest
from playwright.sync_api import Page, Request, Route, expect

from app.pages.files import all_files
from app.pages.registry import PAGES
from app.pages.texts import PARTS, catalogues
from tests.support.browser import Complaints, needs_chromium
from tests.support.challenge import give_totp
from tests.support.pages import (
    Site,
    fill,
    is_complete,
    is_drawn,
    is_signed_in,
    send,
    sign_in,
    sign_in_by_api,
)

pytestmark = needs_chromium

MISSING = "A part of this page could not be loaded."
KEYS = [key for family in PARTS for key in catalogues()["en"].of(family) if "." in key]
BUSY = '{"code":"internal_server_error","msg":"Busy.","data":null,"error":null}'
# What a document asks for before anything can be used.
ASKED_FOR = """() => [
  ...[...document.querySelectorAll("link:is([rel=stylesheet], [rel=modulepreload])")]
    .map(({ href }) => href),
  new URL(document.documentElement.dataset.catalogue, location).href]"""


IS_RELOADED = "performance.getEntriesByType('navigation')[0].type === 'reload'"


def busy(route: Route) -> None:
    """Answer as a proxy or the service does that cannot do it now."""
    route.fulfill(status=503, content_type="application/json", body=BUSY)


def parts(page: Page, path: str) -> list[str]:
    page.goto(path)
    found: list[str] = page.evaluate(ASKED_FOR)
    assert len(found) > 10
    return found


def withhold(page: Page, url: str, **how: int) -> None:
    page.route(lambda one: one == url, busy, **how)


def withhold_at_first(page: Page, url: str) -> None:
    """Withhold a part from the next document, but not from the one after it."""
    documents: list[Request] = []
    page.on("request", lambda one: documents.append(one) if one.is_navigation_request() else None)

    def handle(route: Route) -> None:
        busy(route) if len(documents) == 1 else route.continue_()

    page.route(lambda one: one == url, handle)


def works(page: Page) -> None:
    is_complete(page)
    is_drawn(page)


def works_without_at_first(page: Page, url: str, path: str) -> None:
    """Expect that a page works although its document gets this part only when it is loaded again.

    Texts are asked for again without that, and modules by Chromium itself when they are needed.
    """
    is_text = "/i18n/" in url
    if is_text:
        withhold(page, url, times=1)
    else:
        withhold_at_first(page, url)
    with page.expect_response(lambda one: one.url == url and one.ok):
        page.goto(path)
    assert page.evaluate(IS_RELOADED) is not is_text
    works(page)
    page.unroute_all()


def says_so(page: Page) -> None:
    """Expect the sentence, and that nobody reads names of texts."""
    expect(page.locator("html[data-incomplete]")).to_be_attached()
    expect(page.get_by_text(MISSING)).to_be_visible()
    shown = page.locator("body").inner_text()
    assert [key for key in KEYS if key in shown] == []


def of_each_kind(page: Page, path: str) -> list[str]:
    """Return two styles, the first module and one that others import, and the texts."""
    module = next(one.module for one in PAGES if one.path == path)
    kinds = ("base.css", "theme.css", module, "base/dom.js", "i18n/")
    found = [url for url in parts(page, path) if any(kind in url for kind in kinds)]
    assert len(found) == len(kinds)
    return found


@pytest.fixture
def complaints(complaints: Complaints) -> Complaints:
    """What is missing is told on the console as well."""
    for words in ("Failed to load", "MIME type", "net::ERR"):
        complaints.forgive(words)
    return complaints


def test_every_part_of_the_sign_in_page_is_asked_for_again(page: Page, site: Site) -> None:
    for url in parts(page, "/login"):
        works_without_at_first(page, url, "/login")


@pytest.mark.parametrize("path", ["/setup/storage", "/settings/security", "/admin/settings"])
def test_a_part_that_is_missing_once_is_asked_for_again(page: Page, site: Site, path: str) -> None:
    sign_in_by_api(page, site.ada)
    for url in of_each_kind(page, path):
        works_without_at_first(page, url, path)


@pytest.mark.parametrize("path", ["/login", "/register", "/settings/profile", "/admin/overview"])
def test_a_part_that_is_missing_for_good_is_said_with_a_button(
    page: Page, site: Site, path: str
) -> None:
    sign_in_by_api(page, site.ada)
    for url in of_each_kind(page, path):
        withhold(page, url)
        page.goto(path)
        says_so(page)
        page.unroute_all()
        page.get_by_role("link", name="Reload the page").click()
        works(page)


def test_a_token_survives_what_does_not_arrive(page: Page, site: Site) -> None:
    """It is taken out of the address before anything is asked for."""
    site.post("/auth/password/reset/request", {"email": site.ada.email})
    link = site.mailed()
    page.route("**/i18n/*", busy)
    page.goto(link)
    says_so(page)
    page.unroute_all()
    page.get_by_role("link", name="Reload the page").click()
    fill(page, new_password="a new password")
    send(page)
    page.wait_for_url("**/login?reset=1")


def test_without_any_script_a_form_says_that_it_was_not_sent(page: Page, site: Site) -> None:
    """Neither the modules nor what watches over them arrive; or they hang, which no event tells."""
    page.route("**/pages/**/*.js", lambda route: route.abort())
    page.goto("/login")
    # The time after which it is said without any script begins anew, and stands.
    page.evaluate(
        "document.getAnimations().forEach((one) => { one.pause(); one.currentTime = 0; })"
    )
    expect(page.get_by_text(MISSING)).to_be_hidden()
    sign_in(page, site.ada)
    expect(page.get_by_text("so nothing was sent")).to_be_visible()
    assert "secret" not in page.url
    assert page.url.endswith("/login#unsent")
    page.evaluate("document.getAnimations().forEach((one) => one.finish())")
    expect(page.get_by_text(MISSING)).to_be_visible()
    page.unroute_all()
    page.get_by_role("link", name="Reload the page").click()
    works(page)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)


def test_a_form_that_was_sent_too_early_is_said_so_once(page: Page, site: Site) -> None:
    page.goto("/login#unsent")
    expect(page.get_by_text("so nothing was sent")).to_be_visible()
    works(page)
    assert page.url.endswith("/login")
    page.reload()
    works(page)
    expect(page.get_by_text("so nothing was sent")).to_be_hidden()


def test_what_is_loaded_when_it_is_needed_is_asked_for_twice(page: Page, site: Site) -> None:
    module = f"**{all_files().url('signin/second_factor.js')}"
    give_totp(site.rt, site.ada)
    page.goto("/login")
    page.route(module, busy, times=1)
    sign_in(page, site.ada)
    expect(page.locator("#code")).to_be_visible()
    page.unroute_all()
    page.goto("/login")
    page.route(module, busy)
    sign_in(page, site.ada)
    alert = page.get_by_role("alert").filter(has_text="Something went wrong on this page.")
    expect(alert).to_be_visible()
    page.unroute_all()
    alert.get_by_role("button", name="Reload the page").click()
    works(page)
    sign_in(page, site.ada)
    expect(page.locator("#code")).to_be_visible()
