"""The files of the pages, read once into memory, and which modules import which.

Invariant: a request's path never reaches the file system; it only chooses one of these names.
"""

import json
import posixpath
import re
from functools import cache
from hashlib import sha256
from pathlib import Path

from app.pages import texts
from app.pages.content import Content

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
_IMPORT = re.compile(r"""^(?:import|export)\b[^;]*?["'](\.[^"']+)["'];""", re.MULTILINE)


class Files:
    """All files by name, such as `base/api.js`; `version` changes with any of them."""

    def __init__(self) -> None:
        sources = _sources()
        joined = b"".join(name.encode() + b"\0" + sources[name] for name in sorted(sources))
        self.version = sha256(joined).hexdigest()[:12]
        self.contents = {
            name: Content.of(MEDIA_TYPES[posixpath.splitext(name)[1]], body)
            for name, body in sources.items()
        }
        self._imports = {
            name: _imported(name, body.decode())
            for name, body in sources.items()
            if name.endswith(".js")
        }

    def graph(self, module: str) -> list[str]:
        """Return a module and all that it imports statically, without those loaded on demand."""
        found, waiting = [module], [module]
        while waiting:
            new = [name for name in self._imports[waiting.pop()] if name not in found]
            found += new
            waiting += new
        return found

    def url(self, name: str) -> str:
        """Return the address of this version of a file."""
        return f"/pages/{self.version}/{name}"


@cache
def all_files() -> Files:
    """Return the files of this process."""
    return Files()


def catalogue_name(language: str, family: str) -> str:
    """Return the name of the file with the texts of a family of pages."""
    return f"i18n/{family}.{language}.json"


def _sources() -> dict[str, bytes]:
    found = {
        file.relative_to(STATIC).as_posix(): file.read_bytes()
        for file in STATIC.rglob("*")
        if file.suffix in MEDIA_TYPES and file.parent != texts.FOLDER
    }
    for language, catalogue in texts.catalogues().items():
        for family in texts.PARTS:
            text = json.dumps(catalogue.of(family), ensure_ascii=False, separators=(",", ":"))
            found[catalogue_name(language, family)] = text.encode()
    return found


def _imported(name: str, source: str) -> list[str]:
    folder = posixpath.dirname(name)
    return [posixpath.normpath(posixpath.join(folder, path)) for path in _IMPORT.findall(source)]
