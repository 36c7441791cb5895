"""The result type of the `flask doctor` checks."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The severity: `fail` keeps the service from working, `warn` should be looked into."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One result in plain words, with the remedy unless the level is `ok`."""

    level: Level
    message: str


def ok(message: str) -> Finding:
    """Return the finding that all is well."""
    return Finding(Level.OK, message)


def warn(message: str) -> Finding:
    """Return the finding that something should be looked into."""
    return Finding(Level.WARN, message)


def fail(message: str) -> Finding:
    """Return the finding that something keeps the service from working."""
    return Finding(Level.FAIL, message)
