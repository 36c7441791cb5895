"""The reference page in a real browser: Swagger UI, which may change what its cookies allow."""

import itertools
import json
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.launcher import Service
from tests.support.pages import opened, told

pytestmark = needs_chromium

DOCS = "/api/v1/docs"
DARK = "rgb(28, 32, 34)"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
ADMIN = {"username": "admin", "email": "admin@example.com", "password": "a first password"}


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def page(
    chromium: Browser, service: Service, origin: str, complaints: Complaints
) -> Iterator[Page]:
    """The page of an empty browser; it may neither complain nor speak to anybody else."""
    service.post("/api/v1/auth/setup", **ADMIN)
    with opened(chromium, origin, complaints) as page:
        yield page


def opened_at(page: Page, tag: str, name: str) -> Locator:
    """Open an operation at its address, where it is unfolded."""
    page.goto("about:blank")
    page.goto(f"{DOCS}#/{tag}/{name}")
    operation = page.locator(f"#operations-{tag}-{name}")
    expect(operation.locator(".execute")).to_be_visible()
    return operation


def execute(operation: Locator, body: dict[str, str], status: int) -> None:
    """Send a body, and expect this status."""
    operation.locator(".body-param textarea").fill(json.dumps(body))
    operation.get_by_role("button", name="Execute").click()
    shown = operation.locator(".live-responses-table .response .response-col_status")
    expect(shown).to_contain_text(str(status))


def test_who_signs_in_on_the_page_may_change_something_there_on_any_screen(
    page: Page, complaints: Complaints
) -> None:
    login = opened_at(page, "Login", "login")
    execute(login, {"identifier": "admin", "password": ADMIN["password"]}, 200)
    rename = opened_at(page, "Profile", "updateProfile")
    with page.expect_request("**/auth/profile") as sent:
        execute(rename, {"display_name": "Ada Lovelace"}, 200)
    [token] = [one["value"] for one in page.context.cookies() if one["name"] == "service_csrf"]
    assert sent.value.headers["x-csrf-token"] == token
    profile = told(page, "/auth/me?fields=profile")["profile"]
    assert isinstance(profile, dict)
    assert profile["display_name"] == "Ada Lovelace"

    page.context.clear_cookies(name="service_csrf")
    execute(rename, {"display_name": "Mallory"}, 403)
    complaints.take_refusal(403)
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    for scheme, width in itertools.product(SCHEMES, (390, 1280)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (ground == DARK) is (scheme == "dark")
        assert page.evaluate("document.documentElement.scrollWidth") == width
