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

    def save_file(self, max_bytes: int, write: Callable[[bytes], object]) -> int | None:
        """Pass the first part that has a file name to `write`, and discard all others.

        `max_bytes` limits the file, and also the sum of the other parts. Return the file's size in
        bytes, None if there is no file. Memory never holds more than a chunk of the body.
        Raises: BodyUnreadable, BodyTooLarge.
        """
        part: MultipartSegment | None = None
        file: MultipartSegment | None = None
        all_bytes, sizes = 0, {"file": 0, "others": 0}
        try:
            parser = PushMultipartParser(
                self.boundary or "", max_segment_count=MAX_PARTS, header_charset=HEADER_CHARSET
            )
            while chunk := self.read():
                all_bytes += len(chunk)
                for event in parser.parse(chunk):
                    if isinstance(event, MultipartSegment):
                        part = event
                        if file is None and _has_file_name(part):
                            file = part
                    elif event is not None:
                        whose = "file" if part is file else "others"
                        sizes[whose] += len(event)
                        if part is file and sizes["file"] <= max_bytes:
                            write(bytes(event))
                # What comes before, between and after the parts is discarded, too.
                is_too_much = all_bytes > 2 * max_bytes + MAX_FRAMING_BYTES
                if is_too_much or max(sizes.values()) > max_bytes:
                    raise BodyTooLarge
            if all_bytes:
                parser.close()
        except (MultipartError, UnicodeError):
            raise BodyUnreadable from None
        return None if file is None else sizes["file"]


def _has_file_name(part: MultipartSegment) -> bool:
    """Return whether a part has a file name that is not blank, as read in UTF-8."""
    name = (part.filename or "").encode(HEADER_CHARSET)
    return bool(name.decode(errors="replace").strip())
