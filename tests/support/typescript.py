"""The typed client of `clients/typescript`, laid out with a use of it for the compiler."""

import json
import shutil
from pathlib import Path

from tests.support import npm, servers

CLIENT = servers.ROOT / "clients" / "typescript"
USE = Path(__file__).parent / "typescript_client" / "administration.ts"


def lay_out(folder: Path) -> Path:
    """Fill `folder` with the client, what uses it, and its packages, and return these.

    Raises: npm.Missing.
    """
    npm.install(CLIENT)
    packages = CLIENT / "node_modules"
    (folder / "node_modules").symlink_to(packages)
    for file in (*(CLIENT / name for name in ("client.ts", "usage.ts", "package.json")), USE):
        shutil.copy(file, folder)
    settings = json.loads((CLIENT / "tsconfig.json").read_text())
    settings["files"].append(USE.name)
    (folder / "tsconfig.json").write_text(json.dumps(settings))
    return packages
