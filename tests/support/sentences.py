"""The sentences of findings that pages translate, as the code has them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from app.installation import doctor

APP = Path(__file__).parents[2] / "app"
FOLDERS = ("installation", "external_auth")
# What takes a template as its first argument.
SAYING = {"ok", "warn", "fail", "Sentence"}
# What each of them was told by something else, which says it in English alone.
PASSED_ON = {
    "message",
    "outdated.public_message",
    "problem.template",
    "reason_of(error)",
    "refusal.public_message",
    "rt.keyring.problem",
    "said",
}


def templates_of_findings() -> set[str]:
    """Return the templates of all that `flask doctor`, health and tests of providers can say."""
    modules = [path for folder in FOLDERS for path in (APP / folder).rglob("*.py")]
    return {template for module in modules for template in _templates(module)}


def _templates(module: Path) -> Iterator[str]:
    tree = ast.parse(module.read_text())
    # Texts that have a name, at the top of the module or in a function.
    named = {
        ast.unparse(node.targets[0]): node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SAYING:
            yield from _texts(node.args[0], named)


def _texts(said: ast.expr, named: dict[str, ast.expr]) -> Iterator[str]:
    if isinstance(said, ast.Constant):
        yield str(said.value)
    elif isinstance(said, ast.IfExp):
        yield from _texts(said.body, named)
        yield from _texts(said.orelse, named)
    elif ast.unparse(said) in PASSED_ON or isinstance(said, ast.List):
        return
    elif isinstance(said, ast.Name) and said.id in named:
        if not isinstance(named[said.id], (ast.List, ast.ListComp, ast.Call)):  # of sentences
            yield from _texts(named[said.id], named)
    else:
        raise AssertionError(f"not a template: {ast.unparse(said)}")


# The names of checks: of a provider's test, and of parts that health looks at.
_NAMES = re.compile(
    r"\"(\w+)\": Sentence\(|found\[\"(\w+)\"\] = Sentence|\(\s*\"(\w+)\",\s*\"\w+_supported\"|"
    r"Component\(\"(\w+)\""
)


def names_of_checks() -> set[str]:
    """Return the names of all checks."""
    found = {name for folder in FOLDERS for name in _names(APP / folder)}
    return found | {*doctor.MACHINE, *doctor.DATABASE, *doctor.ROWS}


def _names(folder: Path) -> Iterator[str]:
    for module in folder.rglob("*.py"):
        for groups in _NAMES.findall(module.read_text()):
            yield "".join(groups)
