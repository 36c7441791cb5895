"""Journeys in the other languages of the pages, on a middling screen: light here, dark there."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import app.pages
from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD
from tests.support.fake_provider import FakeProvider
from tests.support.leaks import watch
from tests.support.pages import (
    Site,
    fill,
    give_totp,
    is_drawn,
    open_as,
    opened,
    send,
    told,
)

pytestmark = needs_chromium

CATALOGUES = Path(app.pages.__file__).parent / "static" / "i18n"
NEW = "another good password"
THEMES = {"de": "dark", "zh-CN": "light"}
# What is read and read out.
SHOWN = """() => {
  const texts = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const { data, parentElement } = walk.currentNode;
    if (parentElement.checkVisibility()) texts.push(data);
  }
  for (const node of document.querySelectorAll("body *")) {
    const names = ["aria-label", "title", "placeholder", "alt"];
    if (node.checkVisibility()) texts.push(...names.map((name) => node.getAttribute(name) ?? ""));
  }
  return [document.title, ...texts].map((text) => text.trim()).filter(Boolean);
}"""


@pytest.fixture(params=["de", "zh-CN"])
def language(request: pytest.FixtureRequest) -> str:
    language: str = request.param
    return language


def catalogue(language: str) -> dict[str, str]:
    """Return every text of a language by its key."""
    parts = json.loads((CATALOGUES / f"{language}.json").read_text())
    return {key: text for part in parts.values() for key, text in part.items()}


@pytest.fixture
def texts(language: str) -> dict[str, str]:
    return catalogue(language)


@pytest.fixture
def how(language: str) -> dict[str, Any]:
    """Describe a browser that asks for the language."""
    size = {"width": 768, "height": 900}
    return {"locale": language, "color_scheme": THEMES[language], "viewport": size}


@pytest.fixture
def abroad(
    chromium: Browser,
    site: Site,
    complaints: Complaints,
    how: dict[str, Any],
    loopback: FakeProvider,
) -> Iterator[Page]:
    with opened(chromium, site.origin, complaints, loopback.issuer, **how) as page:
        yield page


def is_at(page: Page, language: str, heading: str) -> None:
    """Expect a heading, and nothing in English."""
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    is_drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 768
    assert in_english(page, language) == []


def in_english(page: Page, language: str) -> list[str]:
    """Return what a page shows of the English catalogue and not of its own."""
    own = set(catalogue(language).values())
    words = [re.escape(text) for text in catalogue("en").values() if text not in own]
    filled = "|".join(re.sub(r"\\\{\w+\\\}", ".+", text) for text in words)
    return [text for text in page.evaluate(SHOWN) if re.fullmatch(filled, text)]


def leave(page: Page) -> None:
    is_drawn(page)
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
    chromium: Browser,
    untouched: Site,
    complaints: Complaints,
    how: dict[str, Any],
    language: str,
    texts: dict[str, str],
) -> None:
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


def test_an_invitation_is_accepted(
    abroad: Page, site: Site, language: str, texts: dict[str, str]
) -> None:
    site.flask("invitations", "create", "bob@example.com")
    abroad.goto(site.mailed())
    is_at(abroad, language, texts["invite.heading"].replace("{site}", "Gatehouse"))
    fill(abroad, username="bob", password=PASSWORD)
    send(abroad)
    abroad.wait_for_url("**/settings/profile")
    expect(abroad.locator("#me")).to_contain_text("bob")
    is_at(abroad, language, texts["profile.title"])


def test_an_address_is_changed(
    abroad: Page, site: Site, language: str, texts: dict[str, str]
) -> None:
    open_as(abroad, site.ada, "/settings/security")
    address = abroad.locator("#address")
    address.get_by_role("button", name=texts["email.change"], exact=True).click()
    is_at(abroad, language, texts["security.title"])
    fill(abroad, new_email="ada@new.example")
    send_new = address.get_by_role("button", name=texts["email.submit"])
    send_new.click()
    sent = texts["email.sent"].replace("{email}", "ada@new.example")
    expect(abroad.locator(".toast")).to_contain_text(sent)
    assert in_english(abroad, language) == []
    abroad.goto(site.mailed())
    abroad.wait_for_url("**/settings/security?*")
    changed = texts["outcome.email-changed"].replace("{email}", "ada@new.example")
    expect(abroad.get_by_role("status").filter(has_text=changed)).to_be_visible()
    is_at(abroad, language, texts["security.title"])
    assert told(abroad, "/auth/me")["email"] == "ada@new.example"


def test_a_provider_signs_in_and_connects(
    abroad: Page, site: Site, provider: FakeProvider, language: str, texts: dict[str, str]
) -> None:
    abroad.goto("/login")
    button = abroad.get_by_role("button", name=texts["login.with"].replace("{name}", "Local login"))
    expect(button).to_be_visible()
    is_at(abroad, language, texts["login.heading"].replace("{site}", "Gatehouse"))
    button.click()
    is_at(abroad, language, texts["unknown.title"])
    fill(abroad, identifier="ada", password=site.ada.password)
    send(abroad)
    abroad.wait_for_url("**/settings/profile")
    expect(abroad.locator("#me")).to_contain_text("ada")
    is_at(abroad, language, texts["profile.title"])
