"""The catalogues: the same texts in every language, all of them used, one for every refusal."""

import json
import re

import pytest

from app.audit.models import Action, EntityType
from app.pages.files import STATIC
from app.pages.registry import MISSING, PAGES
from app.pages.texts import FOLDER
from app.settings.page_keys import LANGUAGES

CATALOGUES = {
    language: json.loads((FOLDER / f"{language}.json").read_text()) for language in LANGUAGES
}
ENGLISH = CATALOGUES["en"]
TEMPLATES = STATIC.parent / "templates"
# Keys that are made of parts, such as `mfa.${method}.label`.
COMPOSED = re.compile(r"[`\"]([\w.-]*)(?:\$\{|\" ~ )")


def sources():
    """Return all code that may name a text."""
    files = [*STATIC.rglob("*.js"), *TEMPLATES.rglob("*.html")]
    return "\n".join(file.read_text() for file in files)


def keys():
    """Return all keys, of plural forms the part that code names."""
    found = [key for texts in ENGLISH.values() for key in texts]
    plurals = {key.removesuffix(".one") for key in found if key.endswith(".one")}
    return {
        key.removesuffix(".one").removesuffix(".other")
        if key.rpartition(".")[0] in plurals
        else key
        for key in found
    }


def placeholders(text):
    return sorted(re.findall(r"\{(\w+)\}", text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_texts(language):
    for part, texts in ENGLISH.items():
        others = CATALOGUES[language][part]
        assert list(others) == list(texts), part
        for key, text in texts.items():
            assert placeholders(others[key]) == placeholders(text), key
            assert others[key].strip(), key


def test_every_action_of_the_audit_log_has_a_text():
    known = {key for key in ENGLISH["console"] if key.startswith("action.")}
    assert known == {f"action.{action.value}" for action in Action}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("action", Action)
def test_every_entry_of_the_audit_log_is_a_sentence(action, language):
    """Whoever did it, and what it was done to, are in it as far as it names them."""
    sentence = CATALOGUES[language]["console"][f"event.{action}"]
    assert set(placeholders(sentence)) <= {"actor", "name"}
    assert len(sentence.replace(" ", "")) > len(CATALOGUES[language]["console"]["event.system"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_that_an_entry_is_about_has_a_word(language):
    known = {key for key in CATALOGUES[language]["admin"] if key.startswith("entity.")}
    assert known == {f"entity.{kind}" for kind in EntityType}


def words(text):
    """Return the words of a text without its placeholders."""
    return re.findall(r"[^\W\d]+", re.sub(r"\{\w+\}", "", text))


def test_languages_differ():
    """A text that was copied and forgotten is the same; German shares some single words."""
    for language, shared in (("de", 1), ("zh-CN", 0)):
        same = {
            key
            for part, texts in ENGLISH.items()
            for key, text in texts.items()
            if CATALOGUES[language][part][key] == text and len(words(text)) > shared
            if not key.startswith(("kind.", "template.html"))  # names that no language translates
        }
        assert same == set(), language


def test_no_part_repeats_a_key_of_another():
    keys = [key for texts in ENGLISH.values() for key in texts]
    assert len(keys) == len(set(keys))


def test_no_text_is_unused():
    code = sources()
    beginnings = tuple(found for found in COMPOSED.findall(code) if "." in found)
    names = {page.name for page in (*PAGES, *MISSING.values())}
    unused = []
    for key in keys():
        is_title = key.removesuffix(".title").removesuffix(".lead") in names
        is_missing = key.endswith(".missing")  # base/form.js: of the field of that name
        if not (f'"{key}"' in code or key.startswith(beginnings) or is_title or is_missing):
            unused.append(key)
    assert unused == []


def test_no_text_is_missing():
    used = set(re.findall(r'\bt\(\s*"([\w.-]+)"', sources()))
    assert used
    assert {key for key in used if not key.endswith(".")} - keys() == set()
