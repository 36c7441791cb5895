"""Journeys in the other languages of the pages, on a middling screen and in the dark."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import app.pages
from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD
from tests.support.leaks import watch
from tests.support.pages import Site, fill, give_totp, opened, send

pytestmark = needs_chromium

CATALOGUES = Path(app.pages.__file__).parent / "static" / "i18n"
NEW = "another good password"


@pytest.fixture(params=["de", "zh-CN"])
def language(request: pytest.FixtureRequest) -> str:
    language: str = request.param
    return language


@pytest.fixture
def texts(language: str) -> dict[str, str]:
    """Every text of the language by its key."""
    parts = json.loads((CATALOGUES / f"{language}.json").read_text())
    return {key: text for part in parts.values() for key, text in part.items()}


@pytest.fixture
def abroad(chromium: Browser, site: Site, complaints: Complaints, language: str) -> Iterator[Page]:
    """A page of a browser that asks for the language."""
    size = {"width": 768, "height": 900}
    how = {"locale": language, "color_scheme": "dark", "viewport": size}
    with opened(chromium, site.origin, complaints, **how) as page:
        yield page


def is_at(page: Page, language: str, heading: str) -> None:
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    assert page.evaluate("document.documentElement.scrollWidth") <= 768


def leave(page: Page) -> None:
    page.locator("#account-menu summary").click()
    page.locator("#sign-out").click()
    page.wait_for_url("**/login?signed_out=1")


def test_an_account_is_made_activated_and_its_password_reset(
    abroad: Page, site: Site, complaints: Complaints, language: str, texts: dict[str, str]
) -> None:
    site.configure(auth_register_activation_enabled="true")
    abroad.goto("/register")
    is_at(abroad, language, texts["register.title"])
    fill(abroad, username="bob", email="bob@example.com", password=PASSWORD)
    send(abroad)
    is_at(abroad, language, texts["pending.title"])
    complaints.take_refusal(403)
    abroad.goto(site.mailed())
    abroad.wait_for_url("**/login?contact_verification=register-activated")
    fill(abroad, identifier="bob", password=PASSWORD)
    send(abroad)
    abroad.wait_for_url("**/settings/profile")
    is_at(abroad, language, texts["profile.title"])
    leave(abroad)
    abroad.goto("/reset-password")
    is_at(abroad, language, texts["reset.title"])
    fill(abroad, email="bob@example.com")
    send(abroad)
    abroad.goto(site.mailed())
    watch.note(NEW)
    fill(abroad, new_password=NEW)
    send(abroad)
    abroad.wait_for_url("**/login?reset=1")
    fill(abroad, identifier="bob", password=NEW)
    send(abroad)
    abroad.wait_for_url("**/settings/profile")


def test_the_service_is_set_up(
    chromium: Browser, untouched: Site, complaints: Complaints, language: str, texts: dict[str, str]
) -> None:
    how = {"locale": language, "color_scheme": "dark", "viewport": {"width": 768, "height": 900}}
    with opened(chromium, untouched.origin, complaints, **how) as page:
        page.goto("/setup")
        is_at(page, language, texts["setup.heading"].replace("{site}", "Gatehouse"))
        fill(page, username="root", email="root@example.com", password=PASSWORD)
        send(page)
        is_at(page, language, texts["first.title"])


def test_a_second_factor_and_a_forced_change_are_asked_for(
    abroad: Page, site: Site, complaints: Complaints, language: str, texts: dict[str, str]
) -> None:
    abroad.goto("/login")
    app, _ = give_totp(abroad, site.ada, site.rt)
    site.change(site.ada, must_change_password=True)
    abroad.goto("/login")
    is_at(abroad, language, texts["login.heading"].replace("{site}", "Gatehouse"))
    fill(abroad, identifier="ada", password=site.ada.password)
    send(abroad)
    is_at(abroad, language, texts["mfa.title"])
    fill(abroad, code=app.wrong_code())
    send(abroad)
    expect(abroad.get_by_text(texts["error.auth.mfa_code_invalid"])).to_be_visible()
    complaints.take_refusal(401)
    fill(abroad, code=app.code(1))
    send(abroad)
    abroad.wait_for_url("**/force-password-change*")
    is_at(abroad, language, texts["force_change.title"])
    watch.note(NEW)
    fill(abroad, current_password=site.ada.password, new_password=NEW)
    send(abroad)
    abroad.wait_for_url("**/settings/profile")
    leave(abroad)
