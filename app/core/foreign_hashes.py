"""Password hashes that other services made: which are accepted, and at what cost at most.

A hash is computed whenever somebody types a password for its account, so one that takes minutes
would let anybody keep the password threads busy.
"""

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
BCRYPT_BYTES = 72
MAX_BCRYPT_ROUNDS = 15
MAX_PBKDF2_ROUNDS = 3_000_000
MAX_MEMORY_KIB = 256 * 1024
# Memory times passes, or lanes of scrypt, which it fills one after the other.
MAX_FILLED_KIB = 1024 * 1024
MAX_LANES = 16


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


def _is_argon2_bearable(hash_: Any) -> bool:
    filled = hash_.memory_cost * hash_.rounds
    return _is_memory_bearable(hash_.memory_cost, filled, hash_.parallelism)


def _is_scrypt_bearable(hash_: Any) -> bool:
    # 128 bytes for each of 2^rounds times block_size.
    memory = 2**hash_.rounds * hash_.block_size // 8
    return _is_memory_bearable(memory, memory * hash_.parallelism, hash_.parallelism)


def _is_memory_bearable(memory: int, filled: int, lanes: int) -> bool:
    return memory <= MAX_MEMORY_KIB and filled <= MAX_FILLED_KIB and lanes <= MAX_LANES


def _is_bcrypt_bearable(hash_: Any) -> bool:
    return bool(hash_.rounds <= MAX_BCRYPT_ROUNDS)


def _is_pbkdf2_bearable(hash_: Any) -> bool:
    return bool(hash_.rounds <= MAX_PBKDF2_ROUNDS)


BEARABLE: Mapping[str, Callable[[Any], bool]] = {
    "argon2": _is_argon2_bearable,
    "scrypt": _is_scrypt_bearable,
    "bcrypt": _is_bcrypt_bearable,
    "django_bcrypt_sha256": _is_bcrypt_bearable,
}


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
    if not BEARABLE.get(scheme, _is_pbkdf2_bearable)(read):
        raise ValueError(f"costs too much to verify ({scheme})")
    return text
