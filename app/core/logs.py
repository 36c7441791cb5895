"""Log lines as text or JSON, each with the ids of its request.

Invariant: no message or field ever carries a password, token, code or cookie.
"""

import logging
import logging.config
import re
import sys
import threading
import time
from contextvars import ContextVar
from typing import Any, Literal, TextIO

from gevent.monkey import get_original
from pythonjsonlogger.json import JsonFormatter

REQUEST_FIELDS = ("request_id", "user_id", "session_id", "token_id")
# Anything as long as a token may be one, in whatever a client sent. The shortest has 32 characters.
TOKEN_LIKE = re.compile(r"[\w-]{32,}")
# What a URL contains only percent-encoded, and what could be mistaken for the end of a field.
ENCODED = re.compile(r"[^!#$&-~]")
REFUSED, QUOTED = "Invalid request", re.compile(r"['\"].*['\"]", re.DOTALL)
QUERY = re.compile(r"\?[^\s'\"]*")

request_fields: ContextVar[dict[str, str | int]] = ContextVar("request_fields")
access_log = logging.getLogger("gatehouse.access")


def note_caller(user_id: int, **ids: str | int) -> None:
    """Add the caller's ids to further log lines of this request; no effect outside one.

    `ids` are `session_id` or `token_id`.
    """
    request_fields.get({}).update(user_id=user_id, **ids)


class RequestFields(logging.Filter):
    """Adds the ids of the current request to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the ids known so far; outside a request there are none."""
        record.__dict__.update(request_fields.get({}))
        return True


class WithoutRequest(logging.Filter):
    """Redacts gunicorn's messages that quote a request: path and query may hold a mailed token."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        message = record.getMessage()
        if message.startswith(REFUSED):  # it may quote any part of the request
            message = QUOTED.sub("...", message)
        record.msg, record.args = TOKEN_LIKE.sub("...", QUERY.sub("?...", message)), None
        return True


class TextFormatter(logging.Formatter):
    """One readable line: time, level, logger, message, then the ids."""

    converter = staticmethod(time.gmtime)
    default_time_format, default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line, to which the base class adds a traceback."""
        record.message = _on_one_line(record.message)
        known = record.__dict__
        ids = [f"{name}={known[name]}" for name in REQUEST_FIELDS if name in known]
        return " ".join([super().formatMessage(record), *ids])


class JsonLineFormatter(JsonFormatter):
    """One JSON object per line: level, logger, message, fields, time."""

    def __init__(self) -> None:
        super().__init__(
            ["levelname", "name", "message"],
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp="time",
        )


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error under a lock of the system's.

    Native threads log, too, and waiting for gevent's lock they and the event loop would block each
    other. No greenlet lets others run while it holds this one.
    """

    def createLock(self) -> None:  # noqa: N802
        """Make the lock."""
        self.lock = get_original("_thread", "RLock")()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Report a bad record; a full disk below standard error cannot be reported on it."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def _on_one_line(message: str) -> str:
    """Escape characters that could forge another record's line or control a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)


def write_access_line(
    method: str, path: str, status: int, code: str, seconds: float, address: str | None
) -> None:
    """Write a request's line, without the URL's query string, which may carry a token.

    `path` is decoded, as WSGI has it, and is encoded again: with a space in it, a client could
    forge the fields that follow. `code` is the error code of a refused request, or empty.
    """
    milliseconds = round(seconds * 1000, 1)
    path = ENCODED.sub(lambda found: f"%{ord(found[0]):02X}", path)
    fields = {
        "method": method,
        "path": path,
        "status": status,
        "duration_ms": milliseconds,
        "address": address,
    }
    if code:
        fields["code"] = code
    outcome = f"{status} {code}" if code else status
    message = f"{method} {path} {outcome} {milliseconds} ms {address or '-'}"
    access_log.info("%s", message, extra=fields)


def configuration(log_format: Literal["text", "json"], level: str) -> dict[str, Any]:
    """Return what sends everything at `level` and above to standard error in the chosen format."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"ids": {"()": RequestFields}, "redacted": {"()": WithoutRequest}},
        "formatters": {"text": {"()": TextFormatter}, "json": {"()": JsonLineFormatter}},
        "handlers": {
            "stderr": {
                "()": StderrHandler,
                "filters": ["ids"],
                "formatter": log_format,
            }
        },
        "root": {"level": level, "handlers": ["stderr"]},
        "loggers": {
            "gunicorn.error": {"filters": ["redacted"], "propagate": True},
            # Alembic logs a line per migration step, which is noise in a server's log.
            "alembic": {"level": "WARNING"},
            # At DEBUG these log whole outgoing requests, client secrets and tokens included.
            "urllib3": {"level": "INFO"},
            "requests_oauthlib": {"level": "INFO"},
            "oauthlib": {"level": "INFO"},
        },
    }


def configure(log_format: Literal["text", "json"], level: str) -> None:
    """Send everything at `level` and above to standard error in the chosen format."""
    logging.config.dictConfig(configuration(log_format, level))


MAX_REASONS = 5


class Outage:
    """Something that fails for a while; `begins` and `ends` are the messages to log.

    In between, only a new reason is logged, such as a password refused after a lost connection, and
    at most MAX_REASONS of them: some contain numbers, so that each would be new.
    """

    def __init__(self, log: logging.Logger, begins: str, ends: str) -> None:
        self._log, self._begins, self._ends = log, begins, ends
        self._lock = threading.Lock()
        self._reasons: set[str] = set()

    @property
    def is_ongoing(self) -> bool:
        """Return whether the outage has begun and not ended."""
        return bool(self._reasons)

    def record_failure(self, reason: str) -> None:
        """Record a failure, and log it if its reason is new."""
        with self._lock:
            if reason in self._reasons or len(self._reasons) >= MAX_REASONS:
                return
            self._reasons.add(reason)
        self._log.warning("%s: %s", self._begins, reason)

    def record_success(self) -> None:
        """Record a success, and log the end of an outage."""
        if not self._reasons:
            return
        with self._lock:
            reasons, self._reasons = self._reasons, set()
        if reasons:
            self._log.warning("%s", self._ends)


class WaitTimes:
    """Seconds that one request has waited so far; logged if the request turns out to be slow."""

    __slots__ = ("database", "redis")

    def __init__(self) -> None:
        self.database = self.redis = 0.0


wait_times: ContextVar[WaitTimes | None] = ContextVar("wait_times", default=None)


def add_database_wait(seconds: float) -> None:
    """Add to the time the current request, if there is one, has waited for the database."""
    if (waits := wait_times.get()) is not None:
        waits.database += seconds


def add_redis_wait(seconds: float) -> None:
    """Add to the time the current request, if there is one, has waited for Redis."""
    if (waits := wait_times.get()) is not None:
        waits.redis += seconds
