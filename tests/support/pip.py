"""Installs Python packages that a test needs into an environment of their own, on first use.

They must fit each other, not those of the suite, and come from a list with hashes.
"""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import servers
from tests.support.npm import Missing

INSTALL_SECONDS = 180


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
    command = [str(python), "-m", module, *arguments]
    try:
        # Never show pip's output: it may reveal the registry in use.
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        raise Missing(f"python -m {module} failed with status {error.returncode}") from None
    except subprocess.TimeoutExpired:
        raise Missing(f"python -m {module} took longer than {INSTALL_SECONDS} s") from None
