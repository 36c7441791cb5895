"""Takes the one file out of a multipart/form-data body while it arrives (RFC 7578)."""

from collections.abc import Callable
from dataclasses import dataclass

from multipart import MultipartError, MultipartSegment, PushMultipartParser

MAX_PARTS = 100
MAX_FRAMING_BYTES = 1024 * 1024


class BodyUnreadable(Exception):
    """The body is no well-formed multipart body, or its sender went away."""


class BodyTooLarge(Exception):
    """The file, or everything around it, is larger than allowed."""


@dataclass(frozen=True)
class MultipartBody:
    """A body on its way in: `read` waits for its next piece, and returns none at the end.

    `boundary` is None where the request names none; `read` raises BodyUnreadable.
    """

    boundary: str | None
    read: Callable[[], bytes]


class FileTaker:
    """Hands the first part that has a file name to `write`, and throws all others away.

    `most_bytes` limits the file, and the other parts together as much again. Never more than one
    read and one line of a part's header is held in memory.
    """

    def __init__(
        self, body: MultipartBody, most_bytes: int, write: Callable[[bytes], None]
    ) -> None:
        self._body = body
        self._most_bytes = most_bytes
        self._write = write
        self._file: MultipartSegment | None = None
        self._file_bytes = 0
        self._other_bytes = 0
        self._all_bytes = 0
        self._part: MultipartSegment | None = None

    def take(self, pause: Callable[[], None]) -> int | None:
        """Read the whole body; return the file's size, None when there is none.

        `pause` is called before each read. Raises: BodyUnreadable, BodyTooLarge.
        """
        try:
            parser = PushMultipartParser(self._body.boundary or "", max_segment_count=MAX_PARTS)
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
        # What stands before, between and after the parts is thrown away, but not for ever.
        if self._all_bytes > 2 * self._most_bytes + MAX_FRAMING_BYTES:
            raise BodyTooLarge
        return chunk

    def _handle(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, MultipartSegment):
            self._part = event
            if self._file is None and (event.filename or "").strip():
                self._file = event
        elif event is None:
            self._part = None
        elif self._part is self._file:
            self._file_bytes += len(event)
            if self._file_bytes > self._most_bytes:
                raise BodyTooLarge
            self._write(bytes(event))
        else:
            self._other_bytes += len(event)
            if self._other_bytes > self._most_bytes:
                raise BodyTooLarge
