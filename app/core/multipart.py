"""Extracts the one file of a multipart/form-data body as it streams in (RFC 7578)."""

from collections.abc import Callable
from dataclasses import dataclass

from multipart import MultipartError, MultipartSegment, PushMultipartParser

MAX_PARTS = 100
MAX_FRAMING_BYTES = 1024 * 1024
# Decodes any bytes: a file may be named in the encoding of its sender's system, not in UTF-8.
HEADER_CHARSET = "latin-1"


class BodyUnreadable(Exception):
    """The body is not well-formed multipart data, or the client disconnected."""


class BodyTooLarge(Exception):
    """The file, or everything around it, exceeds its limit."""


@dataclass(frozen=True)
class MultipartBody:
    """An incoming body: `read` waits for its next chunk, and returns an empty one at the end.

    `boundary` is None if the request names none; `read` may raise BodyUnreadable.
    """

    boundary: str | None
    read: Callable[[], bytes]


class MultipartFileReader:
    """Passes the first part that has a file name to `write`, and discards all others.

    `max_bytes` limits the file, and also the sum of the other parts. Memory never holds more than
    one chunk and one line of a part's header.
    """

    def __init__(self, body: MultipartBody, max_bytes: int, write: Callable[[bytes], None]) -> None:
        self._body = body
        self._max_bytes = max_bytes
        self._write = write
        self._file: MultipartSegment | None = None
        self._file_bytes = 0
        self._other_bytes = 0
        self._all_bytes = 0
        self._part: MultipartSegment | None = None

    def read(self, pause: Callable[[], None]) -> int | None:
        """Read the whole body; return the file's size in bytes, None if there is no file.

        `pause` is called before each read. Raises: BodyUnreadable, BodyTooLarge.
        """
        try:
            parser = PushMultipartParser(
                self._body.boundary or "",
                max_segment_count=MAX_PARTS,
                header_charset=HEADER_CHARSET,
            )
            while chunk := self._next_chunk(pause):
                for event in parser.parse(chunk):
                    self._handle(event)
            if self._all_bytes:
                parser.close()
        except (MultipartError, UnicodeError):
            raise BodyUnreadable from None
        return None if self._file is None else self._file_bytes

    def _next_chunk(self, pause: Callable[[], None]) -> bytes:
        pause()
        chunk = self._body.read()
        self._all_bytes += len(chunk)
        # What comes before, between and after the parts is discarded, but not without limit.
        if self._all_bytes > 2 * self._max_bytes + MAX_FRAMING_BYTES:
            raise BodyTooLarge
        return chunk

    def _handle(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, MultipartSegment):
            self._part = event
            if self._file is None and _has_file_name(event):
                self._file = event
        elif event is None:
            self._part = None
        elif self._part is self._file:
            self._file_bytes += len(event)
            if self._file_bytes > self._max_bytes:
                raise BodyTooLarge
            self._write(bytes(event))
        else:
            self._other_bytes += len(event)
            if self._other_bytes > self._max_bytes:
                raise BodyTooLarge


def _has_file_name(part: MultipartSegment) -> bool:
    """Return whether a part has a file name that is not blank, as read in UTF-8."""
    name = (part.filename or "").encode(HEADER_CHARSET)
    return bool(name.decode(errors="replace").strip())
