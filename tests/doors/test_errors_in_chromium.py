"""Every refusal that a call of the pages may be answered with has its own text in each language."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from playwright.sync_api import Page

from app.pages.files import STATIC
from app.pages.registry import PAGES
from app.pages.texts import FOLDER, PARTS
from app.settings.page_keys import LANGUAGES
from app.web.lockout import FORCE, LOSSES
from tests.doors.findings import Findings
from tests.doors.test_admin_routes import CALL
from tests.support.browser import needs_chromium
from tests.support.openapi import description, resolved
from tests.support.pages import Site
from tests.support.sentences import templates_of_findings

pytestmark = needs_chromium

API = "/api/v1"
# A path that is written out, since something other than the function of the pages calls it.
ADDRESS = re.compile(r"(?:\"/api/v1|`\$\{API\})(/[a-z/-]+)[\"`]")
# Nobody knows what has failed: what is said of all else that failed is true of this.
GENERIC = "internal_server_error"
# They stand for many conditions, which only the sentence of the service tells apart.
SPOKEN = {"bad_request", "forbidden", "conflict"}
# What only programs are told: a page has cookies, and then no token is looked at.
OF_PROGRAMS = ("A token cannot do this.", "This needs a token with the scope ")
# Sentences of theirs that vary, and that no description has.
VARYING = {
    *(f"{what} {FORCE}" for what in LOSSES.values()),
    f"After this change you could not sign in any more. {FORCE}",
}
FAMILIES = sorted({page.family for page in PAGES})

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
      const all = refusals.map(([code, status, msg]) =>
        explained(new Refusal({ status, code, msg, isChange: false })));
      said[family][language] = { all, generic: t("error.fault") };
    }
  }
  return said;
}"""


def refusals(app: Flask, family: str) -> list[tuple[str, int, str]]:
    """Return code, status and sentence of all that calls of a family may be refused with."""
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
                        found |= {
                            (code, int(status), msg) for code, msg in said_in(document, answer)
                        }
    return sorted(found)


def said_in(document: dict[str, Any], answer: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield code and sentence of each error of a described answer."""
    content = resolved(document, answer)["content"]["application/json"]
    for example in content["examples"].values():
        value = resolved(document, example)["value"]
        if not value["msg"].startswith(OF_PROGRAMS):
            yield value["code"], value["msg"]


def sentences(app: Flask, family: str) -> set[str]:
    """Return those that say which of many conditions a code stands for."""
    varying = VARYING if family == "admin" else set()
    return varying | {msg for code, _, msg in refusals(app, family) if code in SPOKEN}


@pytest.fixture
def said(page: Page, app: Flask) -> dict[str, Any]:
    """What the pages say, beside the code, status and sentence it is said of."""
    page.goto("/login")
    families = {family: refusals(app, family) for family in FAMILIES}
    assert all(families.values())
    about = {"families": families, "languages": LANGUAGES}
    texts: dict[str, Any] = page.evaluate(SAY, about)
    for family, of_languages in texts.items():
        for one in of_languages.values():
            one["all"] = dict(zip(families[family], one["all"], strict=True))
    return texts


def test_every_refusal_has_its_own_text_in_every_language(said: dict[str, Any]) -> None:
    findings = Findings()
    for family, of_languages in said.items():
        for language, texts in of_languages.items():
            for (code, status, sentence), shown in texts["all"].items():
                with findings.about(f"{code} ({status}, {sentence}) in {family}.{language}"):
                    assert shown["words"] == "", shown
                    assert code not in shown["text"], shown["text"]
                    assert not shown["text"].startswith("error."), shown["text"]
                    if language != "en":
                        english = of_languages["en"]["all"][code, status, sentence]
                        assert shown["text"] != english["text"]
                    if code != GENERIC:
                        assert shown["text"] != texts["generic"], shown["text"]
    findings.are_none()


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_only_what_the_service_says_is_translated(app: Flask, language: str) -> None:
    """What it says no more would stay for ever: its key is a sentence, and no code names it."""
    parts = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))
    everybodys = sentences(app, "signin") | sentences(app, "account")
    assert parts["service"].keys() == everybodys
    of_administrators = sentences(app, "admin") | templates_of_findings()
    assert parts["service_admin"].keys() == of_administrators - everybodys


def test_a_sentence_that_varies_is_told_in_english_behind_what_its_code_says(
    page: Page, site: Site
) -> None:
    page.goto("/login?lang=de")
    spoken = """async (msg) => {
      const [{ explained }, { Refusal }, { loadTexts }] =
        await Promise.all(["errors", "api", "i18n"].map(window.module));
      await loadTexts();
      return explained(new Refusal({ status: 409, code: "conflict", msg, isChange: true }));
    }"""
    sentence = "The name is taken by 7 others."
    shown = page.evaluate(spoken, sentence)
    assert shown["words"] == sentence
    assert shown["text"] == "Das ist zurzeit nicht möglich."
