"""What an access token looks like: `gth_`, 256 random bits, and a checksum of both.

By its form secret scanners find it, and a mistyped one is refused without a look-up.
"""

import string
import zlib

from app.core.access import PROGRAM_TOKEN_PREFIX as PREFIX
from app.crypto.tokens import random_bytes

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH, CHECKSUM_LENGTH = 43, 6
CHECKED_LENGTH = len(PREFIX) + RANDOM_LENGTH
LENGTH = CHECKED_LENGTH + CHECKSUM_LENGTH
# What is shown of it once it is made.
SHOWN_LENGTH = 8


def new_token() -> str:
    """Return a new token."""
    checked = PREFIX + _base62(int.from_bytes(random_bytes()), RANDOM_LENGTH)
    return checked + _checksum(checked)


def is_well_formed(text: str) -> bool:
    """Return whether it may have been issued here, or anywhere."""
    if len(text) != LENGTH or not (text.startswith(PREFIX) and text.isascii()):
        return False
    return text[len(PREFIX) :].isalnum() and text[CHECKED_LENGTH:] == _checksum(
        text[:CHECKED_LENGTH]
    )


def _checksum(checked: str) -> str:
    return _base62(zlib.crc32(checked.encode("ascii")), CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    """Return a number with leading zeros."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
