"""Packages of npm that tests need, installed at their first use from a lock file with hashes."""

import fcntl
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

INSTALL_SECONDS = 180


class Missing(Exception):
    """Why the packages cannot be had here."""


def install(folder: Path, *options: str, is_complete: Callable[[], bool] = lambda: True) -> None:
    """Install what the lock file in `folder` names, once for all processes of the suite.

    `options` go to `npm ci`; `is_complete` tells whether an earlier installation is enough.
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
        # What npm says may name the registry in use, which is nobody's business.
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
