"""Bytes ready to be sent, plain and compressed."""

import gzip
from dataclasses import dataclass
from hashlib import sha256

# Below this the header of a compressed file outweighs what is gained.
MIN_COMPRESSED_BYTES = 300


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


def _encoded(body: bytes) -> Encoded:
    return Encoded(body, sha256(body).hexdigest()[:16])
