"""What the documentation names exists: files, commands, variables, metrics, settings, codes."""

import re
import subprocess
from pathlib import Path

import click
import pytest

from app.core.config import PREFIX, Config
from app.core.errors import ErrorCode
from app.events.messages import Kind
from app.settings import keys
from app.store.db import Base
from tests.support import servers

ROOT = servers.ROOT
README = ROOT / "README.md"
# For people who run the service or build upon it; the others are about how it came to be.
NAMES = (
    *("architecture", "configuration", "integration", "kubernetes", "operations", "settings"),
    "tour",
)
PAGES = [README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / f"{name}.md" for name in NAMES)]

# Read by a command, not by the service.
OF_COMMANDS = {"CLIENT_SECRET"}
# Brought by Flask and its extensions.
OF_FLASK = {"db", "routes", "run", "shell"}

FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
VARIABLE = re.compile(r"\bGATEHOUSE_([A-Z0-9_]*[A-Z0-9])\b")
COMMAND = re.compile(r"\bflask (?:--app wsgi )?([a-z][a-z-]+)(?: ([a-z][a-z-]+))?")
FILE = re.compile(r"(?:app|bin|clients|deploy|docs|tests|bench|migrations)/[\w./@-]+\w")
MODULE = re.compile(r"[a-z0-9_]+/[a-z0-9_/]+\.py")
METRIC = re.compile(r"(?:http|db|auth|avatar|process|mail|mails|storage|dependency)_[a-z_]+")
SETTING = re.compile(
    r"\bconfig (?:set|get|unset) ([a-z_]+)|`((?:auth|mail|public|branding)_[a-z_]+)`"
)
AREAS = {code.value.partition(".")[0] for code in ErrorCode if "." in code.value}
# Kinds of events look the same.
CODE_OF_ERROR = re.compile(rf"(?:{'|'.join(sorted(AREAS))})\.[a-z_0-9]+")


@pytest.fixture(scope="module")
def metrics(told):
    """The names of all metrics; a histogram's samples have longer ones."""
    return {re.sub("_(bucket|count|sum)$", "", name) for name in told}


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request):
    return request.param


class Noting(dict):
    """An environment without variables that remembers which ones were asked for."""

    def __init__(self):
        super().__init__()
        self.asked = set()

    def get(self, name, default=None):
        self.asked.add(name)
        return default


@pytest.fixture(scope="module")
def read():
    """The names, without PREFIX, of all variables that the configuration is read from."""
    environ = Noting()
    Config.from_env(environ)
    assert environ.asked
    assert all(name.startswith(PREFIX) for name in environ.asked)
    return {name.removeprefix(PREFIX) for name in environ.asked}


def words(page):
    """Return what stands between backticks in a page's prose."""
    return sorted(set(CODE.findall(FENCE.sub("", page.read_text()))))


def test_links_lead_to_files(page):
    for target in set(LINK.findall(page.read_text())):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_files_exist(page):
    for word in words(page):
        if FILE.fullmatch(word):
            assert (ROOT / word).exists(), word
        elif MODULE.fullmatch(word):
            assert (ROOT / "app" / word).exists(), word


def test_variables_are_read(read, page):
    for name in set(VARIABLE.findall(page.read_text())):
        assert name in read | OF_COMMANDS, f"GATEHOUSE_{name}"


def test_every_variable_is_in_the_table(read):
    page = ROOT / "docs" / "configuration.md"
    rows = re.findall(r"^\| `GATEHOUSE_(\w+)` \|", page.read_text(), re.MULTILINE)
    assert sorted(read) == sorted(rows)


def test_the_tour_has_every_group_of_commands_in_its_table(idle_app):
    page = ROOT / "docs" / "tour.md"
    _, _, table = page.read_text().partition("| Group | For |")
    firsts = [row.split("|")[1] for row in table.partition("\n\n")[0].splitlines() if "|" in row]
    own = {name for name in idle_app.cli.commands if name not in OF_FLASK}
    assert set(CODE.findall("".join(firsts))) == own


def test_the_readme_leads_to_every_page():
    linked = set(LINK.findall(README.read_text()))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} - linked == set()


def test_the_architecture_leads_to_every_decision():
    page = (ROOT / "docs" / "architecture.md").read_text()
    for decision in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        assert f"docs/decisions/{decision.name}" in page


def test_commands_exist(idle_app, page):
    context = click.Context(idle_app.cli)
    text = page.read_text()
    for group, name in sorted(set(COMMAND.findall(text))):
        if group == "command":
            continue  # "the flask command"
        command = idle_app.cli.get_command(context, group)
        assert command is not None, f"flask {group}"
        if name and isinstance(command, click.Group):
            assert name in command.commands, f"flask {group} {name}"


def test_metrics_are_told(metrics, page):
    tables = Base.metadata.tables
    columns = {column.name for table in tables.values() for column in table.columns}
    others = set(keys.ALL) | set(tables) | columns
    for word in words(page):
        if METRIC.fullmatch(word) and word not in others:
            assert word in metrics, word


def test_operations_has_every_metric_in_its_table(metrics):
    ours = {name for name in metrics if not name.startswith("python_")}
    assert ours - set(words(ROOT / "docs" / "operations.md")) == set()


def test_settings_exist(metrics, page):
    for set_by_command, word in set(SETTING.findall(page.read_text())):
        name = set_by_command or word
        assert name in set(keys.ALL) | metrics | set(Base.metadata.tables), name


def test_error_codes_are_those_of_the_catalogue(page):
    known = {code.value for code in ErrorCode} | {kind.value for kind in Kind}
    for word in words(page):
        if CODE_OF_ERROR.fullmatch(word):
            assert word in known, word


def test_the_readme_is_short():
    assert len(README.read_bytes()) <= 10_000


def test_nothing_cites_a_page_that_a_reader_does_not_have():
    """A reason is given in words, by an RFC, or by a page of docs/."""
    mark = re.compile(
        r"\bspec(ification)? \d\d\b|\b[Dd]ecisions? [A-F]\d+\b|\([A-F]\d{1,2}\)|\bissue #?\d"
        r"|Source: (?!https?:|RFC)|(?<!\d)0\d §"
    )
    places = ("app", "tests", "docs", "bench", "deploy", "README.md", "CHANGELOG.md")
    ours = {".py", ".md", ".sh", ".html", ".js", ".toml", ".yaml", ".yml", ".conf"}
    listed = subprocess.run(
        ["git", "ls-files", "-z", *places], cwd=ROOT, capture_output=True, text=True, check=False
    )
    files = [ROOT / name for name in listed.stdout.split("\0") if Path(name).suffix in ours]
    found = {
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in files
        if file.exists() and file != Path(__file__)
        for line in file.read_text().splitlines()
        if mark.search(line)
    }
    assert found == set()
