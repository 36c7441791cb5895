"""bin/lib.sh installs what the lists pin, whatever the package index offers by then."""

import base64
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

LIB = Path(__file__).resolve().parents[2] / "bin" / "lib.sh"
SCRIPT = 'set -u; root=$PWD; . "$root/bin/lib.sh"; enter_project; ensure_venv requirements.txt'

# Runs the script with an index of these wheels alone.
Install = Callable[[str], "subprocess.CompletedProcess[str]"]


def wheel(folder: Path, name: str, version: str, *requires: str) -> str:
    """Write a wheel that contains nothing but its metadata, and return its line of a list."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nProvides-Extra: more"]
    metadata += [f"Requires-Dist: {one}" for one in requires]
    files = {
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},{len(text)}"
        for path, text in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.fixture
def install(tmp_path: Path, wheels: Path) -> Install:
    project = tmp_path / "project"
    (project / "bin").mkdir(parents=True)
    shutil.copy(LIB, project / "bin")

    def run(listed: str) -> "subprocess.CompletedProcess[str]":
        (project / "requirements.txt").write_text(listed)
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTHON": sys.executable,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
        }
        return subprocess.run(
            ["sh", "-c", SCRIPT], cwd=project, env=environment, capture_output=True, text=True
        )

    return run


def installed(project: Path) -> str:
    return subprocess.check_output(
        [project / ".venv" / "bin" / "python", "-m", "pip", "freeze"], text=True
    )


@pytest.mark.soak  # it makes an environment, which takes many seconds
def test_a_newer_release_changes_nothing(install, wheels, tmp_path):
    """As when a new release of `inner` asks for an extra, or an `outer` for a newer `inner`."""
    listed = wheel(wheels, "outer", "1.0", "inner[more]>=1") + wheel(wheels, "inner", "1.0")
    wheel(wheels, "inner", "2.0", "another")
    wheel(wheels, "another", "1.0")

    done = install(listed)

    assert done.returncode == 0, done.stderr
    assert installed(tmp_path / "project").split() == ["inner==1.0", "outer==1.0"]


@pytest.mark.soak
def test_a_list_that_lacks_a_package_is_refused_and_tried_again(install, wheels):
    listed = wheel(wheels, "outer", "1.0", "inner")
    wheel(wheels, "inner", "1.0")

    for _ in range(2):
        done = install(listed)

        assert done.returncode == 1
        assert "outer 1.0 requires inner, which is not installed" in done.stderr
        assert "remove .venv and try again" in done.stderr


def test_a_package_whose_content_changed_is_refused(install, wheels):
    listed = wheel(wheels, "inner", "1.0")
    wheel(wheels, "inner", "1.0", "another")

    done = install(listed)

    assert done.returncode == 1
    assert "HASHES" in done.stderr
