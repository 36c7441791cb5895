"""A journey in the other languages of the pages, on a middling screen: light here, dark there."""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, Page, expect

import app.pages
from app.users.models import User
from tests.support.browser import Complaints, needs_chromium
from tests.support.challenge import give_totp
from tests.support.factories import PASSWORD, KnownUser
from tests.support.fake_provider import FakeProvider
from tests.support.leaks import watch
from tests.support.pages import (
    Site,
    add_local_provider,
    ask,
    fill,
    is_drawn,
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
def abroad(
    chromium: Browser,
    untouched: Site,
    complaints: Complaints,
    language: str,
    loopback: FakeProvider,
) -> Iterator[Page]:
    """A browser that asks for the language, in front of a service that nobody has set up."""
    how = {"locale": language, "color_scheme": THEMES[language]}
    size = {"width": 768, "height": 900}
    asked = (untouched.origin, complaints, loopback.issuer)
    with opened(chromium, *asked, viewport=size, **how) as page:
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
    english = foreign_texts(language)
    return [text for text in page.evaluate(SHOWN) if english.fullmatch(text)]


@functools.cache
def foreign_texts(language: str) -> re.Pattern[str]:
    own = set(catalogue(language).values())
    words = [re.escape(text) for text in catalogue("en").values() if text not in own]
    return re.compile("|".join(re.sub(r"\\\{\w+\\\}", ".+", text) for text in words))


def leave(page: Page) -> None:
    is_drawn(page)
    page.locator("#account-menu summary").click()
    page.locator("#sign-out").click()
    page.wait_for_url("**/login?signed_out=1")


def test_a_life_with_the_service(
    abroad: Page,
    untouched: Site,
    complaints: Complaints,
    loopback: FakeProvider,
    language: str,
    texts: dict[str, str],
) -> None:
    page, site = abroad, untouched
    # Whoever signs out may leave a page that has just asked for something.
    complaints.forgive("status of 401")

    def at(key: str) -> None:
        is_at(page, language, texts[key].replace("{site}", "Gatehouse"))

    # Somebody sets the service up.
    page.goto("/setup")
    at("setup.heading")
    fill(page, username="root", email="root@example.com", password=PASSWORD)
    send(page)
    at("first.title")
    ask(page, "/auth/logout")
    # Somebody else makes an account, which is activated by a mail.
    site.configure(auth_register_activation_enabled="true", public_site_url=[site.origin])
    page.goto("/register")
    at("register.title")
    fill(page, username="bob", email="bob@example.com", password=PASSWORD)
    send(page)
    at("pending.title")
    complaints.take_refusal(403)
    page.goto(site.mailed())
    page.wait_for_url("**/login?contact_verification=register-activated")
    at("login.heading")
    # Signing in needs a second factor, and then another password.
    with site.rt.reading() as connection:
        id = connection.execute(sa.select(User.id).where(User.username == "bob")).scalar_one()
    bob = KnownUser(id, "bob", "bob@example.com", PASSWORD)
    app = give_totp(site.rt, bob).app
    site.change(bob, must_change_password=True)
    fill(page, identifier="bob", password=PASSWORD)
    send(page)
    at("mfa.title")
    fill(page, code=app.wrong_code())
    send(page)
    expect(page.get_by_text(texts["error.auth.mfa_code_invalid"])).to_be_visible()
    fill(page, code=app.code(1))
    send(page)
    page.wait_for_url("**/force-password-change*")
    at("force_change.title")
    watch.note(NEW)
    fill(page, current_password=PASSWORD, new_password=NEW)
    send(page)
    page.wait_for_url("**/settings/profile")
    at("profile.title")
    # The address is changed.
    page.goto("/settings/security")
    address = page.locator("#address")
    address.get_by_role("button", name=texts["email.change"], exact=True).click()
    at("security.title")
    fill(page, new_email="bob@new.example")
    address.get_by_role("button", name=texts["email.submit"]).click()
    sent = texts["email.sent"].replace("{email}", "bob@new.example")
    expect(page.locator(".toast")).to_contain_text(sent)
    assert in_english(page, language) == []
    page.goto(site.mailed())
    page.wait_for_url("**/settings/security?*")
    changed = texts["outcome.email-changed"].replace("{email}", "bob@new.example")
    expect(page.get_by_role("status").filter(has_text=changed)).to_be_visible()
    at("security.title")
    assert told(page, "/auth/me")["email"] == "bob@new.example"
    leave(page)
    # The password is forgotten.
    page.goto("/reset-password")
    at("reset.title")
    fill(page, email="bob@new.example")
    send(page)
    page.goto(site.mailed())
    watch.note("a third password")
    fill(page, new_password="a third password")
    send(page)
    page.wait_for_url("**/login?reset=1")
    # A provider signs in and connects.
    add_local_provider(site, loopback)
    page.goto("/login")
    button = page.get_by_role("button", name=texts["login.with"].replace("{name}", "Local login"))
    expect(button).to_be_visible()
    at("login.heading")
    button.click()
    at("unknown.title")
    fill(page, identifier="root", password=PASSWORD)
    send(page)
    page.wait_for_url("**/settings/profile")
    expect(page.locator("#me")).to_contain_text("root")
    leave(page)
    # An invitation is accepted.
    site.flask("invitations", "create", "eve@example.com")
    page.goto(site.mailed())
    at("invite.heading")
    fill(page, username="eve", password=PASSWORD)
    send(page)
    page.wait_for_url("**/settings/profile")
    expect(page.locator("#me")).to_contain_text("eve")
    at("profile.title")
