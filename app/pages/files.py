"""The files of the pages, read once into memory, and which modules import which.

Invariant: a request's path never reaches the file system; it only chooses one of these names.
"""

import gzip
import json
import posixpath
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from app.pages import texts

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
# Below this the header of a compressed file outweighs what is gained.
MIN_COMPRESSED_BYTES = 300
# Whole lines of comments: a third of what modules would weigh.
_COMMENT = re.compile(rb"^[ \t]*(?:/\*\*(?:.(?!\*/))*.\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"""^(?:import|export)\b[^;]*?["'](\.[^"']+)["'];""", re.MULTILINE)


@dataclass(frozen=True)
class Encoded:
    """One representation: its bytes and the name of this version of them."""

    body: bytes
    etag: str


@dataclass(frozen=True)
class Content:
    """A file or document; `zipped` is None where compression gains nothing."""

    media_type: str
    plain: Encoded
    zipped: Encoded | None

    @classmethod
    def of(cls, media_type: str, body: bytes) -> "Content":
        """Return the content with its compressed form."""
        zipped = None
        if len(body) >= MIN_COMPRESSED_BYTES:
            zipped = _encoded(gzip.compress(body, 9, mtime=0))
        return cls(media_type, _encoded(body), zipped)


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
        file.relative_to(STATIC).as_posix(): _sent(file)
        for file in STATIC.rglob("*")
        if file.suffix in MEDIA_TYPES and file.parent != texts.FOLDER
    }
    for language, catalogue in texts.catalogues().items():
        for family in texts.PARTS:
            text = json.dumps(catalogue.of(family), ensure_ascii=False, separators=(",", ":"))
            found[catalogue_name(language, family)] = text.encode()
    return found


def _sent(file: Path) -> bytes:
    """Return what browsers get of a file: modules without their comments."""
    body = file.read_bytes()
    return _COMMENT.sub(b"", body) if file.suffix == ".js" else body


def _encoded(body: bytes) -> Encoded:
    return Encoded(body, sha256(body).hexdigest()[:16])


def _imported(name: str, source: str) -> list[str]:
    folder = posixpath.dirname(name)
    return [posixpath.normpath(posixpath.join(folder, path)) for path in _IMPORT.findall(source)]
