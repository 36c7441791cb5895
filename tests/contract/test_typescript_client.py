"""A TypeScript client is made from the API description, and a use of it compiles."""

import subprocess
from pathlib import Path

import pytest
from flask import Flask

from tests.support import npm, typescript
from tests.support.openapi import DOCUMENT

SECONDS = 300


@pytest.fixture
def folder(app: Flask, tmp_path: Path) -> Path:
    """The client with the types of this very description."""
    try:
        typescript.lay_out(tmp_path)
    except npm.Missing as reason:
        pytest.skip(f"no TypeScript: {reason}")
    (tmp_path / "openapi.json").write_bytes(app.test_client().get(DOCUMENT).data)
    generated = script(tmp_path, "generate")
    assert generated.returncode == 0, generated.stderr
    return tmp_path


def script(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = ["npm", "run", "--silent", name]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_a_frontends_use_of_the_client_compiles(folder: Path) -> None:
    """What must not compile is in usage.ts, too, so types that promise less are found out.

    Whether an administrator's page works is tried in tests/operations.
    """
    assert '"/api/v1/auth/login": {' in (folder / "schema.d.ts").read_text()
    checked = script(folder, "check")
    assert checked.returncode == 0, checked.stdout
