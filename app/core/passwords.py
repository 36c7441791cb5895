"""Password hashing through passlib's API: Argon2id, re-hashed when its parameters change."""

import logging
import unicodedata
from dataclasses import dataclass, field

from passlib.context import CryptContext

from app.core.config import Argon2Cost
from app.core.native_pool import NativePool

log = logging.getLogger(__name__)

MIN_PASSWORD_LENGTH = 8
MAX_PASSWORD_LENGTH = 128
# What a request may carry: an overlong password is refused as such, not as a malformed body.
MAX_TYPED_PASSWORD_LENGTH = 4096


def is_acceptable(password: str) -> bool:
    """Return whether `password` may be set: 8 to 128 characters, no other rule (decision A14)."""
    return MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH


def are_equivalent(password: str, other: str) -> bool:
    """Return whether `Passwords` treats two typed passwords as the same."""
    return normalized(password) == normalized(other)


@dataclass(frozen=True)
class Verdict:
    """Whether a password matches, and its new hash if the stored one has outdated parameters."""

    matches: bool
    new_hash: str | None = field(default=None, repr=False)


class Passwords:
    """Hashes and verifies passwords in a native thread pool of their own."""

    def __init__(self, cost: Argon2Cost, threads: int) -> None:
        self._pool = NativePool(threads)
        self._context = CryptContext(
            schemes=["argon2"],
            argon2__type="ID",
            argon2__memory_cost=cost.memory_kib,
            argon2__time_cost=cost.passes,
            argon2__parallelism=cost.lanes,
        )

    def hash(self, password: str) -> str:
        """Return the hash to store."""
        hashed: str = self._pool.run(self._context.hash, normalized(password))
        return hashed

    def check(self, password: str, stored_hash: str | None) -> Verdict:
        """Compare a typed password with a stored hash.

        None (no account, or one without a password) takes the same time and never matches.
        """
        if len(password) > MAX_PASSWORD_LENGTH:
            stored_hash = None  # no such password was ever accepted
        return self._pool.run(self._check, normalized(password[:MAX_PASSWORD_LENGTH]), stored_hash)

    def _check(self, password: str, stored_hash: str | None) -> Verdict:
        if stored_hash is None:
            self._context.dummy_verify()
            return Verdict(matches=False)
        try:
            matches, new_hash = self._context.verify_and_update(password, stored_hash)
        except ValueError:
            # Not a valid hash, e.g. after a failed import: treated like no password.
            log.exception("a stored password hash cannot be read")
            self._context.dummy_verify()
            return Verdict(matches=False)
        return Verdict(matches=matches, new_hash=new_hash)


def normalized(password: str) -> str:
    """Return the same form for what looks the same: NFKC (NIST SP 800-63B-3 §5.1.1.2)."""
    return unicodedata.normalize("NFKC", password)
