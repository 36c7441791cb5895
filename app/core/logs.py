"""Log lines as text or JSON, each with the ids of its request.

Invariant: no message or field ever carries a password, token, code or cookie.
"""

import logging
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

from pythonjsonlogger.json import JsonFormatter

STDERR = 2
REQUEST_FIELDS = ("request_id", "user_id", "session_id")

# Anything as long as a token may be one, in whatever a client sent. The shortest has 32 characters.
TOKEN_LIKE = re.compile(r"[\w-]{32,}")

# What a URL contains only percent-encoded, and what could be mistaken for the end of a field.
ENCODED = re.compile(r"[^!#$&-~]")

request_fields: ContextVar[dict[str, str | int]] = ContextVar("request_fields")


def note_caller(user_id: int, session_id: str) -> None:
    """Add the caller's ids to further log lines of this request; no effect outside one."""
    request_fields.get({}).update(user_id=user_id, session_id=session_id)


class RequestFields(logging.Filter):
    """Adds the ids of the current request to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the ids known so far; outside a request there are none."""
        fields = request_fields.get(None)
        if fields:
            record.__dict__.update(fields)
        return True


class TextFormatter(logging.Formatter):
    """One readable line: time, level, logger, message, then the ids."""

    def __init__(self) -> None:
        super().__init__()
        self._second = (0, "")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line, to which the base class adds a traceback."""
        known = record.__dict__
        return self.line(record.created, record.levelname, record.name, record.message, known)

    def line(
        self, created: float, level: str, logger: str, message: str, fields: Mapping[str, Any]
    ) -> str:
        """Return one line, with its time in RFC 3339 format; of `fields`, it includes only ids."""
        second = int(created)
        if second != self._second[0]:
            self._second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
        if not message.isprintable():
            message = _on_one_line(message)
        moment = f"{self._second[1]}.{int((created - second) * 1000):03d}Z"
        line = f"{moment} {level} {logger} {message}"
        ids = " ".join([f"{name}={fields[name]}" for name in REQUEST_FIELDS if name in fields])
        return f"{line} {ids}" if ids else line


class JsonLineFormatter(JsonFormatter):
    """One JSON object per line: level, logger, message, fields, time."""

    def __init__(self) -> None:
        super().__init__(
            ["levelname", "name", "message"],
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp="time",
        )

    def line(
        self, created: float, level: str, logger: str, message: str, fields: Mapping[str, Any]
    ) -> str:
        """Return the line of a record with these fields."""
        moment = datetime.fromtimestamp(created, UTC)
        about = {"level": level, "logger": logger, "message": message, **fields, "time": moment}
        return self.jsonify_log_record(about)


def _on_one_line(message: str) -> str:
    """Escape characters that could forge another record's line or control a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)


class DirectHandler(logging.Handler):
    """Writes each record to standard error in one system call, without a buffer or a lock."""

    def __init__(self, formatter: TextFormatter | JsonLineFormatter) -> None:
        super().__init__()
        self.addFilter(RequestFields())
        self.setFormatter(formatter)
        self.line = formatter.line

    def handle(self, record: logging.LogRecord) -> bool:
        """Emit what the filters let through, without the lock that a buffered handler needs."""
        passed = self.filter(record)
        if passed:
            self.emit(record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record."""
        self.write(self.format(record))

    def write(self, text: str) -> None:
        """Write one line; a failure is ignored, since there is nowhere else to report it."""
        line = f"{text}\n".encode("utf-8", "backslashreplace")
        with suppress(OSError):
            while line:
                line = line[os.write(STDERR, line) :]


class AccessLog:
    """Writes one line per request.

    A log record is made only if there are other handlers or filters: it costs more than the line.
    """

    def __init__(self) -> None:
        self._logger = logging.getLogger("gatehouse.access")
        self._root = logging.getLogger()

    def write(
        self, method: str, path: str, status: int, code: str, seconds: float, address: str | None
    ) -> None:
        """Write the line, without the URL's query string, which may carry a token.

        `path` is decoded, as WSGI has it, and is encoded again: with a space in it, a client could
        forge the fields that follow. `code` is the error code of a refused request, or empty.
        """
        if not self._logger.isEnabledFor(logging.INFO):
            return
        milliseconds = round(seconds * 1000, 1)
        outcome = f"{status} {code}" if code else status
        path = ENCODED.sub(lambda found: f"%{ord(found[0]):02X}", path)
        message = f"{method} {path} {outcome} {milliseconds} ms {address or '-'}"
        fields = {
            "method": method,
            "path": path,
            "status": status,
            "duration_ms": milliseconds,
            "address": address,
        }
        if code:
            fields["code"] = code
        handler = self._only_handler()
        if handler is not None:
            fields.update(request_fields.get({}))
            now = time.time()  # noqa: TID251 - as logging does for every other line
            handler.write(handler.line(now, "INFO", self._logger.name, message, fields))
            return
        record = logging.LogRecord(self._logger.name, logging.INFO, "", 0, message, None, None)
        record.__dict__.update(fields)
        self._logger.handle(record)

    def _only_handler(self) -> DirectHandler | None:
        """Return the service's own handler, unless other handlers or filters are installed."""
        handlers = self._root.handlers
        if self._logger.handlers or self._logger.filters or len(handlers) != 1:
            return None
        return handlers[0] if isinstance(handlers[0], DirectHandler) else None


def configure(log_format: Literal["text", "json"], level: str) -> None:
    """Send everything at `level` and above to standard error in the chosen format."""
    handler = DirectHandler(JsonLineFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # These fields are never shown, and each costs a call per record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # Alembic logs a line per migration step, which is noise in a server's log.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # At DEBUG these log whole outgoing requests, client secrets and tokens included.
    for name in ("urllib3", "requests_oauthlib", "oauthlib"):
        logging.getLogger(name).setLevel(logging.INFO)
