"""Password hashes that other services made: which are accepted, and at what cost at most.

A hash is computed whenever somebody types a password for its account, so one that takes minutes
would let anybody keep the password threads busy; and every refused password costs as much as the
most expensive hash of any account.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from passlib.context import CryptContext
from passlib.hash import (
    argon2,
    bcrypt,
    django_bcrypt_sha256,
    django_pbkdf2_sha1,
    django_pbkdf2_sha256,
    pbkdf2_sha256,
    pbkdf2_sha512,
    scrypt,
)

MAX_LENGTH = 255  # of the column
MAX_SECONDS = 1.0  # for one check
BCRYPT_BYTES = 72
MAX_MEMORY_KIB = 256 * 1024
MAX_LANES = 16
_BCRYPT = re.compile(r"\$2[abxy]?\$\d\d\$")


class TruncatingBcrypt(bcrypt):
    """passlib's bcrypt for its library as of version 5, which refuses what bcrypt ignores."""

    @classmethod
    def verify(cls, secret: str | bytes, hash: str | bytes, **_context: Any) -> bool:
        """Return whether the first 72 bytes of a password have this hash.

        Raises: ValueError.
        """
        password = secret.encode() if isinstance(secret, str) else secret
        return bool(super().verify(password[:BCRYPT_BYTES], hash))


SCHEMES = (
    TruncatingBcrypt,
    scrypt,
    pbkdf2_sha256,
    pbkdf2_sha512,
    django_pbkdf2_sha256,
    django_pbkdf2_sha1,
    django_bcrypt_sha256,
)
# Django puts its own name of the method before these.
PREFIXES = ("argon2$argon2", "bcrypt$$2")

_context = CryptContext(schemes=[argon2, *SCHEMES])


def _argon2_kib(hash_: Any) -> int:
    return int(hash_.memory_cost)


def _scrypt_kib(hash_: Any) -> int:
    # 128 bytes for each of 2^rounds times block_size.
    return int(2**hash_.rounds * hash_.block_size // 8)


def _bcrypt_seconds(hash_: Any) -> float:
    return float(2**hash_.rounds * 60e-6)


MEMORY_KIB: Mapping[str, Callable[[Any], int]] = {"argon2": _argon2_kib, "scrypt": _scrypt_kib}
# What one check takes on a usual machine, for the hashes whose cost can be chosen at will.
SECONDS: Mapping[str, Callable[[Any], float]] = {
    "argon2": lambda hash_: _argon2_kib(hash_) * hash_.rounds * 1e-6,
    "scrypt": lambda hash_: _scrypt_kib(hash_) * hash_.parallelism * 2.5e-6,
    "bcrypt": _bcrypt_seconds,
    "django_bcrypt_sha256": _bcrypt_seconds,
}


def _pbkdf2_seconds(hash_: Any) -> float:
    return float(hash_.rounds * 0.35e-6)


def checked(typed: str) -> str:
    """Return a hash as it is stored, from another service's spelling.

    Raises: ValueError, whose text repeats nothing of the hash.
    """
    is_prefixed = typed.startswith(PREFIXES)
    text = typed.partition("$")[2] if is_prefixed else typed
    text = f"${text}" if is_prefixed and not text.startswith("$") else text
    scheme = _context.identify(text)
    if scheme is None or len(text) > MAX_LENGTH:
        raise ValueError("is of no kind that can be verified")
    try:
        read: Any = _context.handler(scheme).from_string(text)
    except (ValueError, TypeError):
        raise ValueError(f"is no complete hash of the kind {scheme}") from None
    if not read.checksum:
        raise ValueError(f"is no complete hash of the kind {scheme}")
    memory = MEMORY_KIB[scheme](read) if scheme in MEMORY_KIB else 0
    if memory > MAX_MEMORY_KIB or getattr(read, "parallelism", 1) > MAX_LANES:
        raise ValueError(f"costs too much: its memory or its number of lanes ({scheme})")
    require_bearable(SECONDS.get(scheme, _pbkdf2_seconds)(read), scheme)
    return text


def require_bearable(seconds: float, scheme: str) -> None:
    """Refuse a hash whose check takes so long.

    Raises: ValueError.
    """
    if seconds > MAX_SECONDS:
        raise ValueError(
            f"costs too much: a check takes {seconds:.1f} s ({scheme}), {MAX_SECONDS:.0f} s at most"
        )


def head_of(hashed: str) -> str:
    """Return what all hashes of a kind and cost begin with: everything before the salt."""
    parts = 1 if _BCRYPT.search(hashed) else 2  # it joins salt and digest
    return hashed.rsplit("$", parts)[0] + "$"


def sample_of(hashed: str) -> str:
    """Return a hash of the same kind and cost that is nobody's, the same for all of that kind."""
    head = head_of(hashed)
    filler = "." if _BCRYPT.search(hashed) else "A"  # each is a valid end of its Base64
    return head + re.sub("[^=$]", filler, hashed[len(head) :])
