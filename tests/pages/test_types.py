"""The modules of the pages are typed, and what they send and read fits the API description."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from flask import Flask

from app.pages.files import STATIC, all_files
from tests.support import npm, servers
from tests.support.openapi import DOCUMENT

CLIENT = servers.ROOT / "clients" / "typescript"
SECONDS = 300
MAX_LINES = 300
# The folders from which each may import.
BELOW = {"base": (), "signin": ("base",), "console": ("base",)}
BELOW |= dict.fromkeys(("account", "admin"), ("base", "console"))

# What the compiler refuses.
WRONG = """// @ts-check
import { call, callForFile } from "./base/api.js";
import { list } from "./console/list.js";
import { orSignIn } from "./base/session.js";
const host = document.body;
const label = "";
call("get", "/auth/you"); // wrong
call("get", "/auth/login"); // wrong
call("post", "/auth/login", { body: { identifier: "ada" } }); // wrong
call("post", "/auth/login", { body: { identifier: "ada", password: 1 } }); // wrong
call("post", "/auth/login", { body: { identifier: "ada", password: "", remember: 1 } }); // wrong
call("patch", "/admin/config", { body: { unset: [], force: true } }); // wrong
call("get", "/admin/users", { query: { role: "queen" } }); // wrong
call("get", "/admin/users", { query: { roles: "admin" } }); // wrong
call("get", "/admin/users/{id}", { path: { user: 1 } }); // wrong
call("get", "/auth/me").then((me) => me.nickname); // wrong
orSignIn(call("get", "/admin/users")).then(({ items }) => items[0]?.nickname); // wrong
callForFile("get", "/docs/nothing"); // wrong
list({
  host,
  label,
  ask: (query) => call("get", "/admin/users", { query }),
  columns: [{ label, cell: (user) => user.nickname }], // wrong
});
list({
  host,
  label,
  columns: [{ label, cell: (user) => user.username }], // wrong: what is asked for stands below
  ask: (query) => call("get", "/admin/users", { query }), // wrong, therefore
});
"""


@pytest.fixture(scope="module")
def packages() -> Path:
    try:
        npm.install(CLIENT)
    except npm.Missing as reason:
        pytest.skip(f"no TypeScript: {reason}")
    return CLIENT / "node_modules"


@pytest.fixture
def folder(app: Flask, packages: Path, tmp_path: Path) -> Path:
    """The modules with the types of this very description."""
    shutil.copytree(STATIC, tmp_path / "static")
    for name in ("types.d.ts", "tsconfig.json"):
        shutil.copy(STATIC.parent / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(packages)
    (tmp_path / "openapi.json").write_bytes(app.test_client().get(DOCUMENT).data)
    generate = ["openapi-typescript", "openapi.json", "--default-non-nullable=false"]
    generated = npx(tmp_path, *generate, "--output", "schema.d.ts")
    assert generated.returncode == 0, generated.stderr
    return tmp_path


def npx(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["npx", "--no-install", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_the_modules_compile_and_what_does_not_fit_the_description_does_not(folder: Path) -> None:
    """Types that promise less would let everything pass."""
    (folder / "static" / "wrong.js").write_text(WRONG)
    checked = npx(folder, "tsc", "--project", ".")
    faults = re.findall(r"^(\S+)\((\d+),", checked.stdout, re.MULTILINE)
    lines = [n for n, line in enumerate(WRONG.splitlines(), 1) if "// wrong" in line]
    assert faults == [("static/wrong.js", str(line)) for line in lines], checked.stdout


def test_no_module_and_no_type_promises_less_than_it_could() -> None:
    """What has the type `any` could be read and sent as anything."""
    for file in (*STATIC.rglob("*.js"), STATIC.parent / "types.d.ts"):
        comments = re.findall(r"/\*\*.*?\*/", file.read_text(), re.DOTALL)
        types = file.read_text() if file.suffix == ".ts" else "\n".join(comments)
        assert not re.search(r"[{<(|:] *any\b|\bany *[}>)|\[]", types), file


def test_every_module_is_checked_and_short() -> None:
    for file in STATIC.rglob("*.js"):
        lines = file.read_text().splitlines()
        assert lines[0] == "// @ts-check", file
        assert len(lines) <= MAX_LINES, file


def test_modules_import_only_their_own_family_and_what_lies_below() -> None:
    for file in STATIC.rglob("*.js"):
        family = file.parent.name
        for line in file.read_text().splitlines():
            if found := re.search(r'from "\.\./(\w+)/', line):
                assert found[1] in BELOW[family], file


def test_no_module_imports_itself_by_way_of_others() -> None:
    files = all_files()
    names = [file.relative_to(STATIC).as_posix() for file in STATIC.rglob("*.js")]
    for name in names:
        for imported in files.graph(name)[1:]:
            assert name not in files.graph(imported), (name, imported)
