"""Watches the logs of the whole suite for secrets: no line may contain one (app/core/logs.py).

Secrets are the values a test sends or receives under a telling name, every cookie, and every random
token the service generates. Logs are all records of the service's own loggers from DEBUG up,
emitted or not; what other loggers emit; and the output of the processes that tests start.
"""

import json
import logging
import re
import secrets as standard_library
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.core import logs
from app.core.errors import ErrorCode
from app.crypto import tokens
from app.mail.templates import Template
from app.setup.queries import SetupState

OURS = ("app", "gatehouse")
# The suite's own SMTP server echoes what it receives.
NOT_THE_SERVICES = frozenset({"mail.log", "mail.debug"})
# Without an SMTP server the service logs a mail's links and codes, so that developers find them
# in it. Nowhere else are secrets logged.
ON_PURPOSE = "no SMTP server is set; "
# Names of secret members in bodies, answers, settings and parameters.
TELLING = re.compile(
    r"(^|_)(password|secret|token|code|codes|flow_id|challenge|state|nonce|signature)$"
)
# Codes and states that are words of the interface.
PUBLIC = frozenset(map(str, (*ErrorCode, *Template, *SetupState)))
MIN_LENGTH = 8
ADDRESS = re.compile(r"[\w.+-]+@example\.com", re.IGNORECASE)
CODE = re.compile(r"\d{6,}")
# Process ids as gunicorn logs them: they may have six digits, like a code.
PROCESS = re.compile(r"(pid: |Listening at: \S+ \()\d+")


class Watch:
    """The secrets of one test, and the log lines to search for them."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._lines: list[str] = []
        # The secrets of all tests so far: processes outlive a test.
        self._ever: set[str] = set()

    # --- secrets -----------------------------------------------------------------------------

    def note(self, *texts: object) -> None:
        """Remember secrets, except values too short or plain to be told from ordinary words."""
        self._secrets.update(text for text in texts if isinstance(text, str) and _is_telling(text))

    def note_members(self, value: Any) -> None:
        """Remember the members of a JSON value that have telling names, at any depth."""
        if isinstance(value, list):
            for item in value:
                self.note_members(item)
        if not isinstance(value, dict):
            return
        for name, member in value.items():
            if isinstance(name, str) and TELLING.search(name):
                self.note(*(member if isinstance(member, list) else [member]))
            self.note_members(member)

    def note_body(self, body: Any) -> None:
        """Remember the secrets in a request's body, which may be anything."""
        if isinstance(body, bytes | str):
            try:
                body = json.loads(body)
            except (ValueError, RecursionError):
                return
        self.note_members(body)

    def note_answer(self, body: bytes, cookies: Iterable[str]) -> None:
        """Remember the secrets in an answer of the service, and its cookies."""
        self.note(*cookies)
        if body.startswith(b'{"code":"success"'):
            self.note_members(json.loads(body)["data"])

    # --- lines -------------------------------------------------------------------------------

    def see(self, record: logging.LogRecord) -> None:
        """Keep a record as text, with the extra fields that a JSON log line would show."""
        if record.name in NOT_THE_SERVICES:
            return
        line = _formatter.format(record)
        known = _plain.keys() | {"message", "asctime"}
        extra = {name: value for name, value in vars(record).items() if name not in known}
        self._lines.append(f"{line} {extra}" if extra else line)

    def leaks(self) -> list[str]:
        """Return the lines that contain a secret, and start over."""
        found = _leaks(self._lines, self._secrets)
        self._ever |= self._secrets
        self._lines, self._secrets = [], set()
        return found

    def leaks_of(self, *outputs: Path) -> list[str]:
        """Return the lines in processes' outputs that contain a secret of any test so far."""
        lines = [
            line
            for path in outputs
            if path.exists()
            for line in path.read_text(errors="replace").splitlines()
        ]
        return _leaks(lines, self._ever | self._secrets)


def _is_telling(text: str) -> bool:
    # Some tests send an address as a password; logs may name whom a mail is for.
    if ADDRESS.fullmatch(text) or text in PUBLIC:
        return False
    return (len(text) >= MIN_LENGTH and not text.isalpha()) or CODE.fullmatch(text) is not None


def _leaks(lines: list[str], secrets: set[str]) -> list[str]:
    # One search over the whole text; single lines are searched only if there is a leak.
    text = "\n".join(PROCESS.sub(r"\1", line) for line in lines if ON_PURPOSE not in line)
    leaked = [secret for secret in secrets if secret in text and _stands_in(secret, text)]
    return [line for line in text.splitlines() if any(_stands_in(one, line) for one in leaked)]


def _stands_in(secret: str, text: str) -> bool:
    """Return whether the text contains the secret; one of digits must not be part of a number."""
    if not secret.isdigit():
        return secret in text
    return re.search(rf"(?<![\w.:-]){secret}(?![\w.:-])", text) is not None


class _RecordingSecrets:
    """Stands in for the module `secrets` in `app.crypto.tokens`, and records the tokens made."""

    def __getattr__(self, name: str) -> Any:
        return getattr(standard_library, name)

    @staticmethod
    def token_urlsafe(size: int) -> str:
        text = standard_library.token_urlsafe(size)
        watch.note(text)
        return text


def _levels_without_us(logger: logging.Logger) -> int:
    """Return a logger's effective level, ignoring the level that `install` sets on ours."""
    current: logging.Logger | None = logger
    while current is not None:
        if current.level and current.name not in OURS:
            return current.level
        current = current.parent
    return logging.NOTSET


def _call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
    watch.see(record)
    if record.levelno >= _levels_without_us(logger):
        _original(logger, record)


def install() -> None:
    """Watch this process from now on, for good, without showing more records to any handler."""
    for name in OURS:
        logging.getLogger(name).setLevel(logging.DEBUG)
    loggers: Any = logging.Logger
    loggers.callHandlers = _call_handlers
    source: Any = tokens
    source.secrets = _RecordingSecrets()


watch = Watch()
_formatter = logs.TextFormatter()
_plain = vars(logging.LogRecord("", 0, "", 0, "", None, None))
_original = logging.Logger.callHandlers
