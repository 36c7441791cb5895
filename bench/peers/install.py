"""Installs the peers from their lock files into `bench/.peers`, which is untracked."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
INSTALLED = SOURCES.parent / ".peers"
NAMES = ("allauth", "flask_security", "better_auth")
# Compiling SQLite for Node takes minutes where no prebuilt binary is available.
INSTALL_TIMEOUT_SECONDS = 900


class Missing(Exception):
    """A peer cannot be installed here; the message says why."""


def ensure(name: str) -> Path:
    """Return the folder of a peer, which is installed first unless it is there and current.

    Raises: Missing; a failed installation is not retried by the same process.
    """
    folder, reason = _ensure(name)
    if reason:
        raise Missing(reason)
    return folder


@cache
def _ensure(name: str) -> tuple[Path, str]:
    folder, stamp = INSTALLED / name, INSTALLED / f"{name}.installed"
    wanted = _digest(name)
    if folder.exists() and stamp.exists() and stamp.read_text() == wanted:
        return folder, ""
    sys.stderr.write(f"installing {name} into bench/.peers\n")
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        (_install_node if _is_node(name) else _install_python)(name, folder)
    except Missing as missing:
        return folder, str(missing)
    stamp.write_text(wanted)
    return folder, ""


def _digest(name: str) -> str:
    lock = "package-lock.json" if _is_node(name) else "requirements.txt"
    return hashlib.sha256((SOURCES / name / lock).read_bytes()).hexdigest()


def _is_node(name: str) -> bool:
    return (SOURCES / name / "package.json").exists()


def _install_python(name: str, folder: Path) -> None:
    _run("venv", [sys.executable, "-m", "venv", str(folder)])
    requirements = str(SOURCES / name / "requirements.txt")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    _run("pip", [*pip, "--no-deps", "--require-hashes", "--requirement", requirements])


def _install_node(name: str, folder: Path) -> None:
    if not shutil.which("node") or not shutil.which("npm"):
        raise Missing("Node and npm are not installed")
    for file in ("package.json", "package-lock.json"):
        shutil.copyfile(SOURCES / name / file, folder / file)
    options = ["--no-audit", "--no-fund", "--loglevel=error"]
    _run("npm ci", ["npm", "ci", *options], folder)
    _run("node", ["node", "--eval", "new (require('better-sqlite3'))(':memory:')"], folder)


def _run(what: str, command: Sequence[str], folder: Path | None = None) -> None:
    """Run one step; its output is never shown, since it may reveal the package index in use."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=INSTALL_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{what} took longer than {INSTALL_TIMEOUT_SECONDS} s") from None
    if done.returncode:
        raise Missing(f"{what} failed with status {done.returncode}")
