"""Log lines as text or JSON, each with the ids of the request it belongs to.

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

# What is as long as a token may be one, in whatever a client sent. The shortest has 32 digits.
TOKEN_LIKE = re.compile(r"[\w-]{32,}")

# What a URL has only percent-encoded, and what could be taken for the end of a field.
ENCODED = re.compile(r"[^!#$&-~]")

request_fields: ContextVar[dict[str, str | int]] = ContextVar("request_fields")


def note_caller(user_id: int, session_id: str) -> None:
    """Have the lines of this request, if there is one, tell whose it is."""
    request_fields.get({}).update(user_id=user_id, session_id=session_id)


class RequestFields(logging.Filter):
    """Adds the ids of the current request to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Set each id that is known; outside a request there is none."""
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
        """Return one line; of the fields only the ids are in it. The time is RFC 3339."""
        second = int(created)
        if second != self._second[0]:
            self._second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
        if not message.isprintable():
            message = _on_one_line(message)
        moment = f"{self._second[1]}.{int((created - second) * 1000):03d}Z"
        line = f"{moment} {level} {logger} {message}"
        ids = " ".join([f"{name}={fields[name]}" for name in REQUEST_FIELDS if name in fields])
        return f"{line} {ids}" if ids else line


class OneJsonObject(JsonFormatter):
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
        """Return the line of a record that has these fields."""
        moment = datetime.fromtimestamp(created, UTC)
        about = {"level": level, "logger": logger, "message": message, **fields, "time": moment}
        return self.jsonify_log_record(about)


def _on_one_line(message: str) -> str:
    """Escape what could start a line that looks like another record's, or steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)


class DirectHandler(logging.Handler):
    """Writes each record to standard error in one call, which needs neither buffer nor lock."""

    def __init__(self, formatter: TextFormatter | OneJsonObject) -> None:
        super().__init__()
        self.addFilter(RequestFields())
        self.setFormatter(formatter)
        self.line = formatter.line

    def handle(self, record: logging.LogRecord) -> bool:
        """Emit what the filters let through, without the lock of a handler that has a buffer."""
        passed = self.filter(record)
        if passed:
            self.emit(record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record."""
        self.write(self.format(record))

    def write(self, text: str) -> None:
        """Write one line; where nobody can read it, nothing can be said either."""
        line = f"{text}\n".encode("utf-8", "backslashreplace")
        with suppress(OSError):
            while line:
                line = line[os.write(STDERR, line) :]


class AccessLog:
    """Writes one line per request.

    A record of it is made only where somebody else handles records, too: that costs more than to
    write the line.
    """

    def __init__(self) -> None:
        self._logger = logging.getLogger("gatehouse.access")
        self._root = logging.getLogger()

    def write(
        self, method: str, path: str, status: int, code: str, seconds: float, address: str | None
    ) -> None:
        """Write the line; the path goes without its query, which may carry a token.

        `path` is as WSGI has it, decoded, and is encoded again: a space in it would let a client
        write the fields that follow. `code` tells why the request was refused; empty where it was
        not.
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
        """Return the service's own handler if nobody else has a say."""
        handlers = self._root.handlers
        if self._logger.handlers or self._logger.filters or len(handlers) != 1:
            return None
        return handlers[0] if isinstance(handlers[0], DirectHandler) else None


def configure(log_format: Literal["text", "json"], level: str) -> None:
    """Send everything at `level` and above to standard error in the chosen form."""
    handler = DirectHandler(OneJsonObject() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # None of these is ever shown, and each costs a call per record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # These tell one line per statement or migration step, which is noise in a server's log.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # At DEBUG these repeat whole requests to others, client secrets and tokens included.
    for name in ("urllib3", "requests_oauthlib", "oauthlib"):
        logging.getLogger(name).setLevel(logging.INFO)
