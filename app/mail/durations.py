"""Durations in words."""

DAY, HOUR, MINUTE = ("day", 86_400), ("hour", 3600), ("minute", 60)


def duration_in_words(seconds: int) -> str:
    """Return a duration in words: "3 days", "1 hour", "90 minutes", "45 seconds".

    Whole days or hours if exact, else minutes rounded up; below a minute, seconds.
    """
    if exact := _in_whole(seconds, DAY, HOUR):
        return exact
    unit, length = MINUTE
    return _counted(-(-seconds // length), unit) if seconds >= length else exact_duration(seconds)


def exact_duration(seconds: int) -> str:
    """Return a duration in words without rounding: "5 minutes", "1 minute", "299 seconds"."""
    return _in_whole(seconds, DAY, HOUR, MINUTE) or _counted(seconds, "second")


def rounded_duration(seconds: int) -> str:
    """Return a duration in words, rounded down: "4 minutes" for 299 seconds.

    Uses the largest unit that fits at least twice, so that at most a third is lost.
    """
    if exact := _in_whole(seconds, DAY, HOUR, MINUTE):
        return exact
    for unit, length in (DAY, HOUR, MINUTE):
        if seconds >= 2 * length:
            return _counted(seconds // length, unit)
    return _counted(seconds, "second")


def _in_whole(seconds: int, *units: tuple[str, int]) -> str | None:
    """Return the span in the first unit that divides it; None if none does."""
    for unit, length in units:
        if seconds >= length and seconds % length == 0:
            return _counted(seconds // length, unit)
    return None


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
