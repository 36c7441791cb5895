"""Installs Python packages that a test needs into an environment of their own, on first use.

They must fit each other, not those of the suite, and come from a list with hashes.
"""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import servers
from tests.support.npm import Missing

INSTALL_SECONDS = 300
# What pip says where it finds no package at all, rather than not the right one.
NO_INDEX = "(from versions: none)"


def install(folder: Path) -> Path:
    """Return the Python of an environment with what `requirements.txt` in `folder` lists.

    It is made once for all workers of the suite. Raises: Missing.
    """
    environment = servers.ROOT / ".cache" / "-".join(folder.relative_to(servers.ROOT).parts)
    environment.parent.mkdir(exist_ok=True)
    python, installed = environment / "bin" / "python", environment / "installed.txt"
    requirements = folder / "requirements.txt"
    # Packages are installed for one Python.
    wanted = f"# {sys.version}\n{requirements.read_text()}"
    with environment.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not installed.exists() or installed.read_text() != wanted:
            shutil.rmtree(environment, ignore_errors=True)
            _run("venv", str(environment))
            options = ("--quiet", "--no-deps", "--require-hashes", "-r", str(requirements))
            _run("pip", "install", *options, python=python)
            installed.write_text(wanted)
    return python


def _run(module: str, *arguments: str, python: Path | str = sys.executable) -> None:
    """Run a module of Python. Raises: Missing if it fails for what this machine lacks."""
    command = [str(python), "-m", module, *arguments]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"python -m {module} took longer than {INSTALL_SECONDS} s", pytrace=False)
    if done.returncode == 0:
        return
    # Never show pip's output: it may reveal the registry in use.
    failed = f"python -m {module} failed with status {done.returncode}"
    if module == "pip" and NO_INDEX not in done.stderr:
        pytest.fail(f"{failed}, although there is an index", pytrace=False)
    raise Missing(failed)
