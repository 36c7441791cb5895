"""Every setting: changed in the console in its own form, saved, and back to its default."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from app.core.setting_kinds import Key
from app.settings import keys, queries
from app.settings.page_keys import LANGUAGES
from tests.doors.findings import Findings
from tests.support.browser import Complaints, needs_chromium
from tests.support.external import add_provider
from tests.support.pages import Site, is_drawn, open_as, opened

pytestmark = needs_chromium

# Texts of mails have a page of their own, and tests of their own.
MAIL_TEXTS = "mail.template"
SETTINGS = {name: key for name, key in keys.ALL.items() if key.group.category != MAIL_TEXTS}
# Where "another text" will not do, or where any other value would end the test.
CHOSEN: dict[str, Any] = {
    "auth_confirmation_max_age_secs": 86_400,
    "branding_favicon_url": "/icon.svg",
    "branding_wordmark_dark_url": "/dark.svg",
    "branding_wordmark_light_url": "https://example.com/light.svg",
    "gravatar_base_url": "https://avatars.example.com",
    "mail_from_address": "service@example.com",
    "mail_helo_name": "mail.example.com",
    "pages_accent_color": "#c02626",
    "pages_footer_links": ["Imprint https://example.com/imprint"],
    "pages_home_path": "/settings/security",
    "pages_sections": ["sign_in", "admin"],
}
ENTRIES = {
    "origin": "https://files.example.com",
    "email_or_domain": "example.net",
    "text": "captain",
}


def another_value(key: Key[Any], text: str | None) -> Any:
    """Return a value that the setting takes, and that it neither has nor has by default.

    A switch has only one other value; `text` is what is stored of it.

    Raises: KeyError if it has to be chosen by hand.
    """
    if key.name in CHOSEN:
        return CHOSEN[key.name]
    if key.value_type == "boolean":
        return not key.value_of(text)
    if key.value_type == "number":
        return key.default + (1 if key.default < key.maximum else -1)
    if key.value_type == "string" and key.options:
        return next(word for word in key.options if word != key.default)
    if key.value_type == "string_enum_set":
        return [word for word in key.default if word != key.options[-1]]
    if key.value_type == "string_array":
        return [ENTRIES[key.item_kind or ""]]
    return f"Another {key.name}"


def shown(page: Page, name: str) -> Any:
    return page.locator(f"[id='{name}']")


def type_in(page: Page, key: Key[Any], value: Any) -> None:
    """Change the control of a setting, as its kind has it."""
    control = shown(page, key.name)
    assert control.count() == 1, "there is no control"
    if key.value_type == "boolean":
        control.click()
    elif key.value_type == "string" and key.options:
        control.select_option(value)
    elif key.value_type == "string_enum_set":
        for word in set(key.default) ^ set(value):
            page.locator(f"[id='{key.name}-{word}']").click()
    elif key.value_type == "string_array":
        for entry in value:
            control.fill(entry)
            control.press("Enter")
    else:
        control.fill(str(value))


def show_category(page: Page, name: str) -> None:
    """Go there without losing what is not saved yet."""
    link = page.locator(f".tabs a[href='/admin/settings/{keys.ALL[name].group.tab}']")
    if not link.get_attribute("aria-current"):
        link.click()


def save(page: Page, site: Site, complaints: Complaints) -> None:
    """Save all drafts, though they lock out who knows only a password."""
    page.get_by_role("button", name="Save", exact=True).click()
    dialog = page.get_by_role("dialog", name="This may lock you out")
    done = page.locator(".save-bar[hidden]")
    wrong = page.locator("[aria-invalid]")
    expect(dialog.or_(done).or_(wrong).first).to_be_attached()
    assert wrong.count() == 0, page.locator(".field-error").all_inner_texts()
    if dialog.count():
        complaints.take_refusal(409)
        dialog.get_by_role("button", name="Save anyway").click()
    expect(done).to_be_attached()


def stored(site: Site) -> dict[str, str]:
    """Return what the service has stored by name."""
    with site.rt.reading() as connection:
        return dict(queries.list_texts(connection))


def is_right(key: Key[Any], text: str | None, value: Any) -> bool:
    """Return whether a stored text says this; of a secret that there is one."""
    if text is None or key.is_sensitive:
        return text is not None
    return bool(key.parse(text) == key.parse(key.render(value)))


def test_every_setting_is_changed_saved_and_returned_to_its_default(
    page: Page, site: Site, complaints: Complaints
) -> None:
    # A way to sign in that remains when all others are switched off.
    add_provider(site.rt, kind="github")
    open_as(page, site.ada, "/admin/settings")
    is_drawn(page)
    findings = Findings()
    values, before = {}, stored(site)
    for name, key in SETTINGS.items():
        with findings.about(name):
            values[name] = another_value(key, before.get(name))
            show_category(page, name)
            type_in(page, key, values[name])
            if key.value_type == "string_array":
                values[name] = [*key.default, *values[name]]
    findings.are_none()
    values["public_site_url"] = [site.origin, *values["public_site_url"]]
    save(page, site, complaints)
    after = stored(site)
    for name, value in values.items():
        with findings.about(name):
            assert is_right(SETTINGS[name], after.get(name), value), after.get(name)
            show_category(page, name)
            page.get_by_role("button", name=f"Back to default: {name}", exact=True).click()
    findings.are_none()
    save(page, site, complaints)
    assert SETTINGS.keys() & stored(site).keys() == set()
    show_all(page)
    expect(page.get_by_role("button", name="Back to default")).to_have_count(0)


# --- words ----------------------------------------------------------------------------------------


def show_all(page: Page) -> None:
    """Look for what all names contain."""
    page.locator("#settings-search").fill("_")
    expect(page.locator(".setting")).to_have_count(len(SETTINGS))


def labels(browser: Browser, site: Site, language: str) -> dict[str, str]:
    """Return what the console calls each setting in a language."""
    with opened(browser, site.origin, Complaints(), locale=language) as page:
        open_as(page, site.ada, "/admin/settings")
        expect(page.locator(f"html[lang={language}]")).to_be_attached()
        show_all(page)
        found: list[list[str]] = page.locator(".setting-head label").evaluate_all(
            "(all) => all.map((label) => [label.htmlFor, label.textContent])"
        )
        return dict(found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_has_a_label_in_every_language(
    chromium: Browser, site: Site, language: str
) -> None:
    shown = labels(chromium, site, language)
    assert {name for name, text in shown.items() if text.strip()} == SETTINGS.keys()


@pytest.mark.parametrize("language", ["de", "zh-CN"])
def test_every_setting_has_a_label_of_its_own_in_every_language(
    chromium: Browser, site: Site, language: str
) -> None:
    english, translated = (labels(chromium, site, one) for one in ("en", language))
    assert [name for name in SETTINGS if translated[name] == english[name]] == []
