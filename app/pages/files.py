"""The files of the pages, read once into memory, and which modules import which.

Invariant: a request's path never reaches the file system; it only chooses one of these names.
"""

import gzip
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path

import brotli

from app.pages import texts

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}
# Below this the header of a compressed file outweighs what is gained.
MIN_COMPRESSED_BYTES = 300
# Brotli's qualities: for documents, which are drawn while somebody waits, and for files.
QUICK, BEST = 5, 11
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
    """A file or document; `effort` is the quality of its Brotli form."""

    media_type: str
    plain: Encoded
    effort: int

    @classmethod
    def of(cls, media_type: str, body: bytes, *, effort: int = QUICK) -> "Content":
        """Return the content of these bytes."""
        return cls(media_type, _encoded(body), effort)

    @cached_property
    def packed(self) -> Mapping[str, Encoded]:
        """Its compressed forms by content coding, the best first; none where nothing is gained.

        They are made when they are first asked for: commands, too, read all files.
        """
        body = self.plain.body
        if len(body) < MIN_COMPRESSED_BYTES or self.media_type == MEDIA_TYPES[".png"]:
            return {}
        return {
            "br": _encoded(brotli.compress(body, quality=self.effort)),
            "gzip": _encoded(gzip.compress(body, 9, mtime=0)),
        }


class Files:
    """All files by name, such as `base/api.js`; `version` changes with any of them."""

    def __init__(self) -> None:
        sources = _sources()
        joined = b"".join(name.encode() + b"\0" + sources[name] for name in sorted(sources))
        self.version = sha256(joined).hexdigest()[:12]
        self.contents = {
            name: Content.of(MEDIA_TYPES[posixpath.splitext(name)[1]], body, effort=BEST)
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
