"""What reaches a browser names no shell command: whoever reads it there has none.

Commands are named by commands, in the log, and in what is called a remedy, which commands print.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from app.pages.texts import FOLDER
from app.settings.page_keys import LANGUAGES
from tests.support.openapi import DOCUMENT
from tests.support.sentences import names_of_checks, templates_of_findings

APP = Path(__file__).parents[2] / "app"
COMMAND = re.compile(r"\b(?:flask|gatehouse) [a-z-]+|\bchmod |bin/serve|(?<![\w-])--[a-z]{2,}")
VALUE = re.compile(r"\{(\w+)\}")
# Before there is a service, and what speaks to whoever starts it or has typed a command.
OF_OPERATORS = (
    "cli.py",
    "commands.py",
    "providers/fields.py",
    "core/folders.py",
    "crypto/keyring.py",
)
# A remedy, and the head of a page of our documentation.
REMEDY = re.compile("remedy|IF_LOST|HEAD", re.IGNORECASE)


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module that are neither docstrings nor logged nor remedies."""
    if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant):
        return  # a docstring
    if isinstance(tree, ast.keyword) and REMEDY.search(tree.arg or ""):
        return
    if isinstance(tree, ast.Assign) and any(REMEDY.search(ast.unparse(to)) for to in tree.targets):
        return
    if isinstance(tree, ast.FunctionDef) and REMEDY.search(tree.name):
        return
    if isinstance(tree, ast.Call):
        name = ast.unparse(tree.func)
        if name.startswith("log."):
            return
        if name in {"ok", "warn", "fail"}:  # a finding: message, remedy, values
            tree = ast.Tuple([*tree.args[:1], *(one.value for one in tree.keywords)])
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    for child in ast.iter_child_nodes(tree):
        yield from texts(child)


def test_no_text_that_may_be_shown_names_a_command() -> None:
    modules = [path for path in APP.rglob("*.py") if not str(path).endswith(OF_OPERATORS)]
    modules = [path for path in modules if path.parent.name != "serving"]
    assert len(modules) > 200
    for module in modules:
        found = texts(ast.parse(module.read_text()))
        assert [text for text in found if COMMAND.search(text)] == [], module


def test_neither_the_api_description_nor_the_catalogues_name_a_command(app: Flask) -> None:
    description = app.test_client().get(DOCUMENT).get_data(as_text=True)
    assert COMMAND.findall(description) == []
    for catalogue in (APP / "pages/static/i18n").glob("*.json"):
        assert COMMAND.findall(catalogue.read_text()) == [], catalogue


def test_a_command_would_be_noticed() -> None:
    for text in ("Run `flask prepare`.", "see flask doctor", "chmod 700 x", "set --tenant again"):
        assert COMMAND.search(text)
    wrong = ast.parse(
        'def f(name):\n    """Run flask x."""\n    raise E(f"Run `flask {name}` x, bin/serve")'
    )
    assert any(COMMAND.search(text) for text in texts(wrong))


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_every_finding_is_translated_with_its_values(language: str) -> None:
    translations = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))["service_admin"]
    templates = templates_of_findings()
    assert "Usable keys: {count}." in templates
    for template in templates:
        values = set(VALUE.findall(template))
        assert set(VALUE.findall(translations[template])) == values, template


def test_every_check_has_a_name_and_no_name_is_of_nothing() -> None:
    texts = json.loads((FOLDER / "en.json").read_text("utf-8"))["admin"]
    named = {key.removeprefix("check.") for key in texts if key.startswith("check.")}
    assert named == names_of_checks()
