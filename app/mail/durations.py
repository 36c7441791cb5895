"""Spans of time in words."""

DAY, HOUR, MINUTE = ("day", 86_400), ("hour", 3600), ("minute", 60)


def life_in_words(seconds: int) -> str:
    """Return how long something is good: "3 days", "1 hour", "90 minutes", "45 seconds".

    Days or hours if they fit exactly, else minutes rounded up, below a minute seconds.
    Source: spec 01 §9.
    """
    if exact := _in_whole(seconds, DAY, HOUR):
        return exact
    unit, length = MINUTE
    return _counted(-(-seconds // length), unit) if seconds >= length else exact_life(seconds)


def exact_life(seconds: int) -> str:
    """Return the same without rounding: "5 minutes", "1 minute", "299 seconds".

    Source: spec 02 §1.3, the sign-in code.
    """
    return _in_whole(seconds, DAY, HOUR, MINUTE) or _counted(seconds, "second")


def rounded_life(seconds: int) -> str:
    """Return the same rounded down, never to more than there is: "4 minutes" for 299 seconds.

    In the largest unit of which there are two, so that no more than a third is lost.
    """
    if exact := _in_whole(seconds, DAY, HOUR, MINUTE):
        return exact
    for unit, length in (DAY, HOUR, MINUTE):
        if seconds >= 2 * length:
            return _counted(seconds // length, unit)
    return _counted(seconds, "second")


def _in_whole(seconds: int, *units: tuple[str, int]) -> str | None:
    """Return a span in the first unit that it is a whole number of; None when it is of none."""
    for unit, length in units:
        if seconds >= length and seconds % length == 0:
            return _counted(seconds // length, unit)
    return None


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
