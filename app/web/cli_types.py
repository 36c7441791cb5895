"""Parameter types for the arguments and options of commands.

Each rejects a value with a sentence that says what is wrong and what would be right.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import click

from app.core import sizes
from app.core.texts import did_you_mean, whole_number


class Timestamp(click.ParamType[datetime]):
    """A point in time: RFC 3339, or only a date; UTC unless it has an offset."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return an aware datetime."""
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is no time such as 2026-03-02 or 2026-03-02T09:30:00Z", param, ctx
            )


class BoundedInteger(click.ParamType[int]):
    """A whole number within bounds, in ASCII digits."""

    name = "number"

    def __init__(self, least: int, most: int, *, described_as: str = "") -> None:
        """Accept `least` to `most`; errors say `described_as`, or the two numbers."""
        self._bounds = range(least, most + 1)
        self._wanted = f"a whole {self.name} {described_as or f'from {least} to {most}'}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            number = value if isinstance(value, int) else self._number_in(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)
        if number not in self._bounds:
            self.fail(f"{value!r} must be {self._wanted}", param, ctx)
        return number

    def _number_in(self, text: str) -> int:
        number = whole_number(text)
        if number is None:
            raise ValueError(f"must be {self._wanted}")
        return number


class Size(BoundedInteger):
    """A number of bytes, or a size with its unit."""

    def _number_in(self, text: str) -> int:
        return super()._number_in(text) if text.startswith("-") else sizes.parse(text)


class Word(click.Choice[str]):
    """One of several words; the error for a misspelt one suggests which may be meant.

    If there are many, give the parameter a metavar, or its usage line lists them all.
    """

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__([str(word) for word in words])

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Return the valid words and last, where it is noticed, the one that may be meant."""
        told = f"{value!r} is not one of {', '.join(self.choices)}."
        return told + did_you_mean(str(value), self.choices)
