"""Installs npm packages that tests need, on first use, from a lock file with hashes."""

import fcntl
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

INSTALL_SECONDS = 180


class Missing(Exception):
    """The packages cannot be installed here; the message says why."""


def install(folder: Path, *options: str, is_complete: Callable[[], bool] = lambda: True) -> None:
    """Install what the lock file in `folder` names, once for all workers of the suite.

    `options` go to `npm ci`; `is_complete` reports whether an earlier installation suffices.
    Raises: Missing.
    """
    if not shutil.which("node") or not shutil.which("npm"):
        raise Missing("Node and npm are not installed")
    with (folder / ".install.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        lock, installed = folder / "package-lock.json", folder / "node_modules" / ".installed"
        is_current = installed.exists() and installed.read_bytes() == lock.read_bytes()
        if not is_current or not is_complete():
            _ci(folder, options)
            shutil.copyfile(lock, installed)


def _ci(folder: Path, options: tuple[str, ...]) -> None:
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        # Never show npm's output: it may reveal the registry in use.
        subprocess.run(
            [*command, *options],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        raise Missing(f"npm ci failed with status {error.returncode}") from None
    except subprocess.TimeoutExpired:
        raise Missing(f"npm ci took longer than {INSTALL_SECONDS} s") from None
