"""Usernames for accounts that are created for an external identity (spec 03 §6.1)."""

import hashlib
import re
from collections.abc import Iterator

from app.core.tokens import random_alphanumerics

TRIES = 5
MIN_LENGTH, MAX_LENGTH = 4, 16
MAX_STEM_LENGTH = 9
SUFFIX_CHARACTERS = 6
FALLBACK = "oidc"

_TO_HYPHEN = re.compile(r"[. ]")
_DROPPED = re.compile(r"[^a-z0-9_-]")


def candidates(subject: str, preferred: str | None, address: str) -> Iterator[str]:
    """Yield usernames to try: the one derived from the profile, then some with random suffixes."""
    name = _name(subject, preferred, address)
    yield name
    stem = name[:MAX_STEM_LENGTH].strip("-")
    stem = stem if len(stem) >= MIN_LENGTH else FALLBACK
    for _ in range(TRIES - 1):
        yield f"{stem}-{random_alphanumerics(SUFFIX_CHARACTERS)}"


def _name(subject: str, preferred: str | None, address: str) -> str:
    sources = (_cleaned(preferred or ""), _cleaned(address.partition("@")[0]))
    fallback = FALLBACK + hashlib.sha256(subject.encode()).hexdigest()[:8]
    name = next((source for source in sources if len(source) >= MIN_LENGTH), fallback)
    return name[:MAX_LENGTH].strip("-").ljust(MIN_LENGTH, "0")


def _cleaned(source: str) -> str:
    # Before lower(), which turns some other characters, such as the Kelvin sign, into ASCII.
    ascii_only = "".join(c for c in source if c.isascii())
    return _DROPPED.sub("", _TO_HYPHEN.sub("-", ascii_only.lower())).strip("-")
