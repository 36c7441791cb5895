"""What the console says of settings is in the catalogues: all of it, and nothing else."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.audit.models import Action
from app.core.parsing import Bounds
from app.pages.texts import FOLDER
from app.settings.page_keys import LANGUAGES, THEMES
from tests.doors.test_settings_in_chromium import SETTINGS

APP = Path(__file__).parents[2] / "app"
LABEL_LENGTH = 45
# Where values of settings are refused, and the functions whose sentences are such refusals.
REFUSING = {
    "audit/keys.py": None,
    "core/email_address.py": {"helo_name"},
    "core/parsing.py": None,
    "core/setting_kinds.py": None,
    "settings/changes.py": {"check"},
    "settings/frontend_keys.py": None,
    "settings/keys.py": None,
    "settings/mail_keys.py": {"_mail_address", "_helo_name"},
    "settings/page_keys.py": None,
    "settings/service.py": {"joint_problems"},
    "web/cors.py": {"allowed_origin"},
    "web/site.py": None,
}
# What the page never sends: it has boxes for the words that are taken, and sends plain numbers.
NOT_SENT = {
    "must be a single value",
    "must be a string",
    "must be in one of the units B, {}",
    "must be one of {}",
    "must say which unit: {}",
    "{} is not an audited action",
    "{} must be one of {}",
}
# "must be {}": of bounds, whose words these are, and of what is no list at all.
BOUNDS = {re.sub(r"\d{2}", "{}", f"must be {Bounds(10, 20, is_off)}") for is_off in (True, False)}


def part(language: str) -> dict[str, str]:
    texts: dict[str, str] = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))["settings"]
    return texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_has_a_label_and_nothing_else_has(language: str) -> None:
    texts = part(language)
    named = {key.split(".")[1] for key in texts if key.startswith("setting.")}
    assert named == SETTINGS.keys()
    for name in SETTINGS:
        assert texts[f"setting.{name}"]
        if language == "en":
            assert len(texts[f"setting.{name}"]) <= LABEL_LENGTH, name
    others = {key for key in texts if key.startswith("setting.")} - {
        f"setting.{name}{end}" for name in SETTINGS for end in ("", ".help")
    }
    assert others == set()


def test_every_word_that_a_setting_takes_has_a_text_and_nothing_else_has() -> None:
    known = {key for key in part("en") if key.startswith("option.")}
    elsewhere = {"pages_theme": THEMES, "audit_log_recorded_actions": tuple(Action)}
    own = {name: key for name, key in SETTINGS.items() if name not in elsewhere}
    assert known == {f"option.{name}.{word}" for name, key in own.items() for word in key.options}
    for name, words in elsewhere.items():
        assert sorted(SETTINGS[name].options) == sorted(map(str, words))


def shape(node: ast.expr) -> str | None:
    """Return a text with {} for what varies in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(shape(part) or "{}" for part in node.values)
    return None


def refusals(tree: ast.AST, functions: set[str] | None) -> Iterator[str]:
    """Yield what is raised, and what is kept as a problem by name, in these functions or all."""
    found: list[Any] = [tree]
    if functions is not None:
        found = [one for one in ast.walk(tree) if getattr(one, "name", None) in functions]
        assert {one.name for one in found} == functions
    for node in (inner for one in found for inner in ast.walk(one)):
        sentence = None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ValueError":
            sentence = shape(node.args[0])
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("problems["):
            sentence = shape(node.value)
        if sentence:
            yield sentence


def test_every_refusal_of_a_value_has_a_text_and_nothing_else_has() -> None:
    """By its shape: the catalogue has names for what varies."""
    said = set(BOUNDS)
    for name, functions in REFUSING.items():
        said |= set(refusals(ast.parse((APP / name).read_text()), functions))
    assert said >= NOT_SENT | {"must be {}"}
    texts = {key.removeprefix("problem.") for key in part("en") if key.startswith("problem.")}
    shapes = {re.sub(r"\{\w+\}", "{}", text) for text in texts}
    assert shapes == said - NOT_SENT - {"must be {}"}
