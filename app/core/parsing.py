"""What a text says, in a variable of the environment or a setting: a word, a number, a size."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

Word = TypeVar("Word", bound=str)


def one_of(word: str, allowed: Collection[Word]) -> Word:
    """Return the allowed word that equals `word`.

    Raises: ValueError.
    """
    for each in allowed:
        if each == word:
            return each
    raise ValueError(f"must be one of {', '.join(allowed)}")


def whole_number(text: str) -> int | None:
    """Return the integer that ASCII digits spell, negative with a hyphen; None if it is none.

    More than 19 digits give None as well: no store holds them.
    """
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 20
    return int(text) if is_number else None


@dataclass(frozen=True)
class Bounds:
    """The whole numbers from `least` to `most`; with `is_off_at_zero`, 0 whatever these are."""

    least: int
    most: int
    is_off_at_zero: bool = False

    def __contains__(self, number: int) -> bool:
        is_off = self.is_off_at_zero and number == 0
        return is_off or self.least <= number <= self.most

    def __str__(self) -> str:
        zero = "0, or " if self.is_off_at_zero else ""
        return f"{zero}from {self.least} to {self.most}"

    def read(self, text: str) -> int:
        """Return the number that a text spells.

        Raises: ValueError.
        """
        number = whole_number(text.strip())
        if number is None:
            raise ValueError("must be a whole number")
        if number not in self:
            raise ValueError(f"must be {self}")
        return number


def switch(text: str) -> bool:
    """Return what a word for true or false means.

    Raises: ValueError.
    """
    word = text.strip().lower()
    if word in {"true", "1", "yes", "on"}:
        return True
    if word in {"false", "0", "no", "off"}:
        return False
    raise ValueError("must be true or false")


# Sizes as people write them: 5GB is 5 * 10**9 bytes, 5GiB is 5 * 2**30.
DECIMAL = ("kB", "MB", "GB", "TB", "PB")
BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB")
UNITS = {unit: 1000**power for power, unit in enumerate(DECIMAL, 1)}
UNITS |= {unit: 1024**power for power, unit in enumerate(BINARY, 1)}
SIZE_EXAMPLES = "such as 5GB (5000 MB) or 5GiB (5120 MiB)"

_FACTORS = {unit.lower(): factor for unit, factor in UNITS.items()} | {"": 1, "b": 1}
# Programs differ in whether these mean 1000 or 1024.
_AMBIGUOUS = {
    unit[0].lower(): (decimal, unit) for decimal, unit in zip(DECIMAL, BINARY, strict=True)
}
_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s?([a-z]*)", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int:
    """Return the number of bytes that a text says; a number without a unit is in bytes.

    Raises: ValueError, which says what is wrong ("must be ...").
    """
    match = _SIZE.fullmatch(text.strip().replace("_", ""))
    if match is None:
        raise ValueError(f"must be a whole number of bytes, or a size {SIZE_EXAMPLES}")
    number, unit = match[1], match[2].lower()
    if unit in _AMBIGUOUS:
        meant = " or ".join(f"{number}{unit}" for unit in _AMBIGUOUS[unit])
        raise ValueError(f"must say which unit: {meant}")
    if unit not in _FACTORS:
        raise ValueError(f"must be in one of the units B, {', '.join(UNITS)}")
    size = Fraction(number) * _FACTORS[unit]
    if size.denominator != 1:
        raise ValueError("must be a whole number of bytes")
    return int(size)


def format_size(size: int) -> str:
    """Return a size in bytes, and in the largest unit that divides it without a remainder."""
    fitting = [unit for unit, factor in UNITS.items() if size and size % factor == 0]
    in_bytes = "1 byte" if size == 1 else f"{size} bytes"
    if not fitting:
        return in_bytes
    unit = max(fitting, key=UNITS.__getitem__)
    return f"{in_bytes} ({size // UNITS[unit]} {unit})"
