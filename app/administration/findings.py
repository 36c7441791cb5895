"""What a check of `flask doctor` finds."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is: a `fail` keeps the service from working, a `warn` should be looked at."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One result in plain words, with what to do unless all is well."""

    level: Level
    message: str


def ok(message: str) -> Finding:
    """Return that all is well."""
    return Finding(Level.OK, message)


def warn(message: str) -> Finding:
    """Return that something should be looked at."""
    return Finding(Level.WARN, message)


def fail(message: str) -> Finding:
    """Return that something keeps the service from working."""
    return Finding(Level.FAIL, message)
