"""Every code that a call of the pages may be answered with has its own text in each language."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from playwright.sync_api import Page

from app.pages.files import STATIC
from app.pages.texts import PARTS
from app.settings.page_keys import LANGUAGES
from tests.doors.findings import Findings
from tests.doors.test_admin_routes import CALL
from tests.support.browser import needs_chromium
from tests.support.openapi import codes_of, description

pytestmark = needs_chromium

API = "/api/v1"
# A path that is written out, since something other than the function of the pages calls it.
ADDRESS = re.compile(r"(?:\"/api/v1|`\$\{API\})(/[a-z/-]+)[\"`]")
# Nobody knows what has failed: what is said of all else that failed is true of this.
GENERIC = "internal_server_error"
# They stand for many conditions, which only the words of the service tell apart.
SPOKEN = {"bad_request", "forbidden", "conflict"}

# Return what a page says of refusals: by family of pages and language, in their order.
SAY = """async ({ families, languages }) => {
  const [{ explained }, { Refusal }, { loadTexts, t }] =
    await Promise.all(["errors", "api", "i18n"].map(window.module));
  const { dataset } = document.documentElement;
  const folder = dataset.catalogue.replace(/[^/]+$/, "");
  const said = {};
  for (const [family, refusals] of Object.entries(families)) {
    said[family] = {};
    for (const language of languages) {
      dataset.catalogue = `${folder}${family}.${language}.json`;
      await loadTexts();
      const all = refusals.map(([code, status]) =>
        explained(new Refusal({ status, code, msg: `words of ${code}`, isChange: false })));
      said[family][language] = { all, generic: t("error.fault") };
    }
  }
  return said;
}"""


def refusals(app: Flask, family: str) -> list[tuple[str, int]]:
    """Return code and status of all that calls of a family of pages may be refused with."""
    document = description(app).document
    found = set()
    for folder in PARTS[family]:
        for file in (STATIC / folder).glob("*.js"):
            source = file.read_text()
            calls = CALL.findall(source)
            calls += [
                (method, path)
                for path in ADDRESS.findall(source)
                for method in document["paths"][API + path]
            ]
            for method, path in calls:
                for status, answer in document["paths"][API + path][method]["responses"].items():
                    if int(status) >= 400:
                        found |= {(code, int(status)) for code in codes_of(document, answer)}
    return sorted(found)


@pytest.fixture
def said(page: Page, app: Flask) -> dict[str, Any]:
    """What the pages say, beside the code and status it is said of."""
    page.goto("/login")
    families = {family: refusals(app, family) for family in PARTS}
    assert all(families.values())
    about = {"families": families, "languages": LANGUAGES}
    texts: dict[str, Any] = page.evaluate(SAY, about)
    for family, of_languages in texts.items():
        for one in of_languages.values():
            one["all"] = dict(zip(families[family], one["all"], strict=True))
    return texts


def examine(said: dict[str, Any], is_meant: Callable[[str], bool]) -> None:
    findings = Findings()
    for family, of_languages in said.items():
        for language, texts in of_languages.items():
            for (code, status), shown in texts["all"].items():
                if not is_meant(code):
                    continue
                with findings.about(f"{code} ({status}) in {family}.{language}"):
                    assert not shown["isEnglish"], shown["text"]
                    assert code not in shown["text"], shown["text"]
                    assert not shown["text"].startswith("error."), shown["text"]
                    if language != "en":
                        assert shown["text"] != of_languages["en"]["all"][code, status]["text"]
                    if code != GENERIC:
                        assert shown["text"] != texts["generic"], shown["text"]
    findings.are_none()


def test_every_code_has_its_own_text_in_every_language(said: dict[str, Any]) -> None:
    examine(said, lambda code: code not in SPOKEN)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="Codes that stand for many conditions are explained by the service, in English only.",
)
@pytest.mark.parametrize("code", sorted(SPOKEN))
def test_what_breaks_a_rule_is_said_in_the_language_of_the_page(
    said: dict[str, Any], code: str
) -> None:
    examine(said, lambda one: one == code)
