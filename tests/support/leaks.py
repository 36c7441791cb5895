"""Watches the whole suite's logs for secrets: no line may carry one (app/core/logs.py).

What counts as a secret is what a test sends or gets under a telling name, every cookie, and every
random token that the service makes. What counts as a log is what the service's own loggers are
given, from DEBUG on and whether or not it is shown; what other loggers show; and the output of the
processes that tests start.
"""

import json
import logging
import re
import secrets as standard_library
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.core import logs, tokens

OURS = ("app", "gatehouse")
# The suite's own SMTP server repeats what it is told.
NOT_THE_SERVICES = frozenset({"mail.log", "mail.debug"})
# A service without an SMTP server logs a mail's links and codes, so that developers find them
# (decisions, B). The one place where that happens.
ON_PURPOSE = "no SMTP server is set; "
# Members of bodies and answers, settings and parameters.
TELLING = re.compile(
    r"(^|_)(password|secret|token|code|codes|flow_id|challenge|state|nonce|signature)$"
)
SHORTEST = 8
CODE = re.compile(r"\d{6,}")
# gunicorn's words before the id of a process, which may have six digits, too, like some code.
PROCESS = re.compile(r"(pid: |Listening at: \S+ \()\d+")


class Watch:
    """The secrets of one test, and its log lines that are to be compared with them."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._lines: list[str] = []
        # For processes, which live longer than a test.
        self._ever: set[str] = set()

    # --- secrets -----------------------------------------------------------------------------

    def note(self, *texts: object) -> None:
        """Remember secrets; not what is too short or plain to be told from ordinary words."""
        self._secrets.update(text for text in texts if isinstance(text, str) and _is_telling(text))

    def note_members(self, value: Any) -> None:
        """Remember the members of a JSON value that are named like a secret, at any depth."""
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
        """Remember those of a request's body, which may be anything."""
        if isinstance(body, bytes | str):
            try:
                body = json.loads(body)
            except (ValueError, RecursionError):
                return
        self.note_members(body)

    def note_answer(self, body: bytes, cookies: Iterable[str]) -> None:
        """Remember those of an answer of the service."""
        self.note(*cookies)
        if body.startswith(b'{"code":"success"'):
            self.note_members(json.loads(body)["data"])

    # --- lines -------------------------------------------------------------------------------

    def see(self, record: logging.LogRecord) -> None:
        """Take a record in, as text and with whatever else a JSON line would show of it."""
        if record.name in NOT_THE_SERVICES:
            return
        line = _formatter.format(record)
        known = _plain.keys() | {"message", "asctime"}
        extra = {name: value for name, value in vars(record).items() if name not in known}
        self._lines.append(f"{line} {extra}" if extra else line)

    def leaks(self) -> list[str]:
        """Return the lines with a secret in them, and begin anew."""
        found = _leaks(self._lines, self._secrets)
        self._ever |= self._secrets
        self._lines, self._secrets = [], set()
        return found

    def leaks_of(self, *outputs: Path) -> list[str]:
        """Return such lines of a process that this run of tests has spoken to."""
        lines = [
            line
            for path in outputs
            if path.exists()
            for line in path.read_text(errors="replace").splitlines()
        ]
        return _leaks(lines, self._ever | self._secrets)


def _is_telling(text: str) -> bool:
    return (len(text) >= SHORTEST and not text.isalpha()) or CODE.fullmatch(text) is not None


def _leaks(lines: list[str], secrets: set[str]) -> list[str]:
    # One search over everything; which line it was matters only where there is a leak.
    text = "\n".join(PROCESS.sub(r"\1", line) for line in lines if ON_PURPOSE not in line)
    leaked = [secret for secret in secrets if secret in text and _stands_in(secret, text)]
    return [line for line in text.splitlines() if any(_stands_in(one, line) for one in leaked)]


def _stands_in(secret: str, text: str) -> bool:
    """Tell whether it does; digits must stand alone, or they may be part of another number."""
    if not secret.isdigit():
        return secret in text
    return re.search(rf"(?<![\w.:-]){secret}(?![\w.:-])", text) is not None


class _RecordingSecrets:
    """The module `secrets`, as the service's randomness uses it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(standard_library, name)

    @staticmethod
    def token_urlsafe(size: int) -> str:
        text = standard_library.token_urlsafe(size)
        watch.note(text)
        return text


def _levels_without_us(logger: logging.Logger) -> int:
    """Return the level in force but for ours."""
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
    """Begin to watch this process, for good; nothing else sees more records than it would."""
    for name in OURS:
        logging.getLogger(name).setLevel(logging.DEBUG)
    logging.Logger.callHandlers = _call_handlers  # type: ignore[method-assign]
    tokens.secrets = _RecordingSecrets()  # type: ignore[assignment]


watch = Watch()
_formatter = logs.TextFormatter()
_plain = vars(logging.LogRecord("", 0, "", 0, "", None, None))
_original = logging.Logger.callHandlers
