"""Spans of time in words."""

UNITS = (("day", 86_400), ("hour", 3600))
MINUTE = 60


def life_in_words(seconds: int) -> str:
    """Return how long something is good: "3 days", "1 hour", "90 minutes", "45 seconds".

    Days or hours if they fit exactly, else minutes rounded up, below a minute seconds.
    Source: spec 01 §9.
    """
    for unit, length in UNITS:
        if seconds >= length and seconds % length == 0:
            return _counted(seconds // length, unit)
    if seconds >= MINUTE:
        return _counted(-(-seconds // MINUTE), "minute")
    return _counted(seconds, "second")


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
