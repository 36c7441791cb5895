"""What arguments and options of commands can be, beyond text."""

from datetime import UTC, datetime
from typing import Any

import click


class Moment(click.ParamType[datetime]):
    """A point in time: RFC 3339, or only a date; UTC unless it says otherwise."""

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
