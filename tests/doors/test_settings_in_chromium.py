"""Every setting: changed in the console in its own form, saved, and back to its default."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.core.setting_kinds import Key
from app.pages.texts import catalogues
from app.settings import keys, queries
from app.settings.page_keys import LANGUAGES
from tests.doors.findings import Findings
from tests.support.browser import Complaints, needs_chromium
from tests.support.external import add_provider
from tests.support.pages import Site, faults_of, is_drawn, open_as, opened

pytestmark = needs_chromium

# Texts of mails have a page of their own, and tests of their own.
MAIL_TEXTS = "mail.template"
SETTINGS = {name: key for name, key in keys.ALL.items() if key.group.category != MAIL_TEXTS}
GERMAN = catalogues()["de"].of("admin")
# A word of the API that is one of English, too.
ENGLISH = "account"
# Where "another text" will not do, or where any other value would end the test.
CHOSEN: dict[str, Any] = {
    "auth_confirmation_max_age_secs": 86_400,
    "auth_mfa_trusted_device_secs": 2_592_000,
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
# Of the units that numbers are shown in, the one that is stored.
SMALLEST = {"seconds": "second", "bytes": "byte"}


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
            box = page.locator(f"[id='{key.name}-{word}']")
            if not box.is_visible():  # in a group that is shown when asked for
                page.locator(".ticks details", has=box).locator("summary").click()
            box.click()
    elif key.unit in SMALLEST:
        page.locator(f"[id='{key.name}-unit']").select_option(SMALLEST[key.unit])
        control.fill(str(value))
    elif key.value_type == "string_array":
        for entry in value:
            control.fill(entry)
            control.press("Enter")
    else:
        control.fill(str(value))


def places(page: Page) -> dict[str, Locator]:
    """Return the link to the tab of each setting; none may stand in two."""
    found: dict[str, Locator] = {}
    for link in page.locator(".tabs a[href^='/admin/settings/']").all():
        link.click()
        for name in names(page):
            assert name not in found, name
            found[name] = link
    return found


def names(page: Page) -> list[str]:
    """Return the settings that the page shows."""
    rows = page.locator(".setting").all()
    return [str(row.get_attribute("aria-labelledby")).removesuffix("-label") for row in rows]


def show(page: Page, link: Locator) -> None:
    """Go there without losing what is not saved yet."""
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
    tabs = places(page)
    assert tabs.keys() == SETTINGS.keys()
    values, before = {}, stored(site)
    for name, key in SETTINGS.items():
        with findings.about(name):
            values[name] = another_value(key, before.get(name))
            show(page, tabs[name])
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
            show(page, tabs[name])
            row = page.locator(".setting", has=shown(page, name))
            row.get_by_role("button", name="Back to default").click()
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


def read(page: Page, language: str, texts: str) -> dict[str, list[str]]:
    """Return what a page in a language has in these elements, by setting."""
    expect(page.locator(f"html[lang={language}]")).to_be_attached()
    is_drawn(page)
    show_all(page)
    found: dict[str, list[str]] = page.locator(".setting").evaluate_all(
        """(rows, texts) => Object.fromEntries(rows.map((row) => [
          row.getAttribute("aria-labelledby").replace(/-label$/, ""),
          [...row.querySelectorAll(texts)].map((one) => one.textContent.trim()),
        ]))""",
        texts,
    )
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_settings_their_values_and_defaults_are_in_the_language_of_the_page(
    chromium: Browser, site: Site, language: str
) -> None:
    """Neither the words of the API are shown, nor keys of texts."""
    with opened(chromium, site.origin, Complaints(), locale=language) as page:
        open_as(page, site.ada, "/admin/settings")
        labels = read(page, language, ".setting-name")
        assert labels.keys() == SETTINGS.keys()
        assert all(one and not one.startswith("setting.") for [one] in labels.values())
        chosen = "select:not([id$='-unit']) option, .ticks .tick label, .setting-facts span"
        findings = Findings()
        for name, texts in read(page, language, chosen).items():
            with findings.about(name):
                words = {word for text in texts for word in re.split(r"[^\w.-]+", text)}
                raw = {*SETTINGS[name].options, "true", "false"} - {ENGLISH}
                assert words & raw == set()
                assert not any(one.startswith(("option.", "action.", "unit.")) for one in words)
        findings.are_none()


def test_a_label_is_what_the_catalogue_has(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/settings?lang=de")
    labels = read(page, "de", ".setting-name")
    assert labels == {name: [GERMAN[f"setting.{name}"]] for name in SETTINGS}


# --- durations and sizes --------------------------------------------------------------------------


def is_amount(page: Page, name: str, number: str, unit: str) -> None:
    expect(shown(page, name)).to_have_value(number)
    expect(shown(page, f"{name}-unit")).to_have_value(unit)


def type_amount(page: Page, name: str, number: str, unit: str) -> None:
    shown(page, name).fill(number)
    shown(page, f"{name}-unit").select_option(unit)


def is_saved(page: Page, site: Site, name: str, text: str | None) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".save-bar[hidden]")).to_be_attached()
    assert stored(site).get(name) == text


def row(page: Page, name: str) -> Locator:
    return page.locator(".setting", has=shown(page, name))


def test_durations_have_the_unit_that_fits(page: Page, site: Site) -> None:
    token, grace = "auth_access_token_ttl_secs", "auth_refresh_reuse_grace_secs"
    open_as(page, site.ada, "/admin/settings/sessions")
    is_amount(page, token, "15", "minute")
    expect(row(page, token)).to_contain_text("Default: 15 minutes")
    is_amount(page, grace, "0", "second")
    type_amount(page, token, "1.5", "hour")
    is_saved(page, site, token, "5400")
    is_amount(page, token, "90", "minute")
    # What is the same in another unit is not a change.
    type_amount(page, token, "1.5", "hour")
    expect(page.locator(".save-bar")).to_be_hidden()
    # The bounds are told as durations, and 0 is what it was.
    confirmation = "auth_confirmation_max_age_secs"
    type_amount(page, confirmation, "30", "second")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(shown(page, confirmation)).to_have_accessible_description(
        re.compile("Enter 0, or a value from 1 minute to 1 day")
    )
    shown(page, confirmation).fill("0")
    expect(page.locator(".save-bar")).to_be_hidden()


def test_sizes_have_the_unit_that_fits(page: Page, site: Site) -> None:
    quota, largest = "default_storage_quota", "avatar_max_upload_size_bytes"
    open_as(page, site.ada, "/admin/settings/storage")
    is_amount(page, quota, "0", "gigabyte")
    expect(row(page, quota).get_by_text("Default: 0", exact=True)).to_be_visible()
    type_amount(page, quota, "2.5", "gigabyte")
    is_saved(page, site, quota, "2500000000")
    is_amount(page, quota, "2500", "megabyte")
    page.get_by_role("link", name="Accounts", exact=True).click()
    is_amount(page, largest, "10485760", "byte")
    expect(row(page, largest)).to_contain_text("Default: 10,485,760 bytes (about 10.5 MB)")


# --- search ---------------------------------------------------------------------------------------


def test_a_search_finds_categories_and_stands_in_the_address(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/settings/mail?lang=de")
    is_drawn(page)
    search = page.get_by_role("searchbox", name="Alle Einstellungen durchsuchen")
    search.fill("SITZUNGEN")
    expect(page.get_by_role("heading", name="Sitzungen", exact=True)).to_be_visible()
    assert set(names(page)) >= {"auth_cookie_secure", "auth_access_token_ttl_secs"}
    search.fill("fuß links")
    expect(page.locator(".setting")).to_have_count(1)
    assert names(page) == ["pages_footer_links"]
    page.reload()
    expect(search).to_have_value("fuß links")
    expect(page.locator(".setting")).to_have_count(1)
    page.get_by_role("link", name="Konten", exact=True).click()
    expect(search).to_have_value("")
    page.go_back()
    expect(search).to_have_value("fuß links")
    assert names(page) == ["pages_footer_links"]
    search.fill("nothing of the kind")
    expect(page.locator(".empty")).to_contain_text("„nothing of the kind“")
    page.get_by_role("button", name="Suche leeren").click()
    expect(search).to_be_focused()
    expect(shown(page, "mail_smtp_host")).to_be_visible()
    assert "q=" not in page.url


# --- single kinds ---------------------------------------------------------------------------------


def test_a_colour_is_typed_or_picked(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/settings/pages")
    typed, picker = shown(page, "pages_accent_color"), page.get_by_label("Pick a colour")
    note = row(page, "pages_accent_color")
    expect(picker).to_have_value("#2563eb")
    expect(note).to_contain_text("white text 5.1:1, black text 4.0:1")
    typed.fill("#FFFF00")
    expect(picker).to_have_value("#ffff00")
    expect(note).to_contain_text("white text 1.0:1, black text 19.5:1")
    typed.fill("#ffff0")
    expect(note.get_by_text("white text")).to_be_hidden()
    picker.fill("#0a7d33")
    expect(typed).to_have_value("#0a7d33")
    is_saved(page, site, "pages_accent_color", "#0a7d33")


def test_the_order_of_languages_is_that_of_ticking(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/settings/pages")
    english = page.get_by_label("English", exact=True)
    english.uncheck()
    english.check()
    expect(row(page, "pages_languages")).to_contain_text(
        "German, Chinese (simplified), and English"
    )
    is_saved(page, site, "pages_languages", '["de", "zh-CN", "en"]')
    page.get_by_label("Chinese (simplified)").uncheck()
    is_saved(page, site, "pages_languages", '["de", "en"]')


def test_recorded_actions_are_ticked_by_group(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/settings/audit")
    group = page.locator(".ticks details", has_text="What happens to teams")
    group.locator("summary").click()
    group.get_by_label("All of these").uncheck()
    expect(group.locator("summary")).to_contain_text("0 of 7")
    group.get_by_label("Team created").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".save-bar[hidden]")).to_be_attached()
    actions = json.loads(stored(site)["audit_log_recorded_actions"])
    assert [one for one in actions if one.startswith("team_")] == ["team_create"]


def test_a_setting_says_who_changed_it(page: Page, site: Site) -> None:
    open_as(page, site.ada, "/admin/settings/site")
    expect(row(page, "public_site_url")).to_contain_text("by a command")


def test_the_bar_covers_nothing_that_has_the_focus(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    open_as(page, site.ada, "/admin/settings/sign_in?lang=de")
    shown(page, "auth_password_blocklist_enabled").click()
    expect(page.locator(".save-bar")).to_be_visible()
    covered = page.evaluate(
        """() => {
          const bar = document.querySelector(".save-bar");
          const all = [...document.querySelectorAll(".settings :is(input, select, button)")];
          return all.filter((one) => {
            one.focus();
            return one.getBoundingClientRect().bottom > bar.getBoundingClientRect().top;
          }).map((one) => one.id);
        }"""
    )
    assert covered == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize(("language", "said"), [("de", "Geben Sie"), ("zh-CN", "请输入")])
def test_what_is_wrong_is_told_in_the_language_of_the_page(
    page: Page, site: Site, language: str, said: str
) -> None:
    open_as(page, site.ada, f"/admin/settings?lang={language}")
    is_drawn(page)
    show_all(page)
    wrong = {
        "auth_access_token_ttl_secs": "100000",
        "mail_smtp_port": "70000",
        "mail_helo_name": "no host",
        "pages_accent_color": "red",
        "pages_home_path": "nowhere",
        "gravatar_base_url": "ftp://a.example",
    }
    for name, value in wrong.items():
        shown(page, name).fill(value)
    page.locator(".save-bar .primary").click()
    expect(page.locator("[aria-invalid]")).to_have_count(len(wrong))
    for name in wrong:
        expect(shown(page, name)).to_have_accessible_description(re.compile(f"^{said}"))
    assert page.locator(".field-error [lang=en]").count() == 0


def test_every_kind_of_control_fits_and_can_be_used_by_everybody(page: Page, site: Site) -> None:
    """With a draft and a wrong value."""
    open_as(page, site.ada, "/admin/settings?q=_&lang=de")
    expect(page.locator(".setting")).to_have_count(len(SETTINGS))
    for group in page.locator(".ticks summary").all():
        group.click()
    shown(page, "mail_smtp_port").fill("70000")
    page.locator(".save-bar .primary").click()
    expect(page.locator("[aria-invalid]")).to_be_focused()
    assert faults_of(page) == []
