"""Passwords: which may be set, and their Argon2id hashes by passlib's policy and libsodium."""

import hmac
import logging
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import Any, NamedTuple

from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id
from passlib.context import CryptContext
from passlib.hash import argon2

from app.core.config import Argon2Cost
from app.core.thread_pool import ThreadPool
from app.crypto import foreign_hashes
from app.crypto.leaked_passwords import LeakedPasswords
from app.crypto.tokens import random_bytes

log = logging.getLogger(__name__)

MIN_PASSWORD_LENGTH = 8
MAX_PASSWORD_LENGTH = 128
# What a request may carry: an overlong password is refused as such, not as a malformed body.
MAX_TYPED_PASSWORD_LENGTH = 4096
# How often a sample is verified to learn its cost: the least is what it takes undisturbed.
MEASURED_TIMES = 3
# What passlib raises for text that is not a hash, or a damaged one.
UNREADABLE = (ValueError, TypeError, AssertionError)
# A fraction of a millisecond.
FILLING_ROUNDS = 500


def is_acceptable(password: str) -> bool:
    """Return whether `password` may be set: 8 to 128 characters, no other rule."""
    return MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH


def are_equivalent(password: str, other: str) -> bool:
    """Return whether `Passwords` treats two typed passwords as the same."""
    return normalized(password) == normalized(other)


class SodiumArgon2(argon2):
    """passlib's argon2, computed by libsodium where that can: it takes two thirds of the time.

    It knows one lane and a salt of 16 bytes, the defaults here; argon2-cffi computes all others.
    """

    @classmethod
    def hash(cls, secret: str | bytes, **_context: Any) -> str:
        """Return the hash of a password, with a new salt."""
        if cls.parallelism != 1:
            return str(super().hash(secret))  # type: ignore[no-untyped-call]
        made: Any = cls(salt=random_bytes(argon2id.SALTBYTES), rounds=cls.default_rounds)
        made.checksum = _computed(secret, made, cls.checksum_size)
        return str(made.to_string())

    @classmethod
    def verify(cls, secret: str | bytes, hash: str | bytes, **_context: Any) -> bool:
        """Return whether a password has this hash.

        Raises: ValueError, if it is not a valid one.
        """
        known: Any = cls.from_string(hash)
        is_usual = (known.type, known.version, known.parallelism) == ("id", 0x13, 1)
        if not is_usual or len(known.salt) != argon2id.SALTBYTES or known.checksum is None:
            return bool(super().verify(secret, hash))  # type: ignore[no-untyped-call]
        computed = _computed(secret, known, len(known.checksum))
        return hmac.compare_digest(computed, known.checksum)


def _computed(secret: str | bytes, parameters: Any, size: int) -> bytes:
    password = secret.encode() if isinstance(secret, str) else secret
    memory = parameters.memory_cost * 1024
    try:
        return argon2id.kdf(size, password, parameters.salt, parameters.rounds, memory)
    except CryptoError as error:  # out of bounds, or of memory
        raise ValueError(str(error)) from error


@dataclass(frozen=True)
class PasswordVerdict:
    """Whether a password matches, and its new hash if the stored one has outdated parameters."""

    matches: bool
    new_hash: str | None = field(default=None, repr=False)


class Cost(NamedTuple):
    """What work takes, in seconds.

    `cpu` is computed by this thread, `process` by all threads, those of Argon2's lanes among them;
    `wall` passes until it is done, with what others do meanwhile.
    """

    cpu: float
    wall: float
    process: float

    @classmethod
    def now(cls) -> "Cost":
        """Return what the clocks say."""
        return cls(time.thread_time(), time.perf_counter(), time.process_time())

    def since(self) -> "Cost":
        """Return what was spent since `now`."""
        now = Cost.now()
        return Cost(now.cpu - self.cpu, now.wall - self.wall, now.process - self.process)


class Passwords:
    """Hashes and verifies passwords in a native thread pool of their own.

    `leaked` is the operator's list of passwords that nobody should set. `find_secret` returns a
    secret by its id that an imported hash needs, None if there is none that can be read.
    """

    def __init__(
        self,
        cost: Argon2Cost,
        threads: int,
        leaked: Path | None = None,
        find_secret: Callable[[str], bytes | None] = lambda _: None,
    ) -> None:
        self.leaked = LeakedPasswords(leaked)
        self._find_secret = find_secret
        self._secrets: dict[str, bytes] = {}
        self._pool = ThreadPool(threads, is_nice=True)
        self._context = CryptContext(
            schemes=[SodiumArgon2, *foreign_hashes.SCHEMES],
            deprecated="auto",
            argon2__type="ID",
            argon2__memory_cost=cost.memory_kib,
            argon2__time_cost=cost.passes,
            argon2__parallelism=cost.lanes,
        )
        self._costs: dict[str, Cost] = {}

    def hash(self, password: str) -> str:
        """Return the hash to store."""
        hashed: str = self._pool.run(self._context.hash, normalized(password))
        return hashed

    @cached_property
    def own_sample(self) -> str:
        """A sample of the hashes made here."""
        return foreign_hashes.sample_of(self._context.hash("any"))

    def seconds(self, sample: str) -> float:
        """Return how long this machine computes for one check of a hash like this sample.

        However busy it is; for commands, whose process computes nothing else at the same time.
        """
        return self._pool.run(self._cost, sample).process

    def check(
        self, password: str, stored_hash: str | None, samples: Collection[str] = ()
    ) -> PasswordVerdict:
        """Compare a typed password with a stored hash.

        None (no account, or one without a password) never matches. Whatever is refused takes as
        long as the dearest kind of hash that accounts have, of which there are these samples.
        """
        if len(password) > MAX_PASSWORD_LENGTH:
            stored_hash = None  # no such password was ever accepted
        typed = password[:MAX_PASSWORD_LENGTH]
        secret = self._secret_of(stored_hash)
        return self._pool.run(self._check_evenly, typed, stored_hash, secret, samples)

    def _secret_of(self, stored_hash: str | None) -> bytes | None:
        """Return what an imported hash needs besides the password; it never changes."""
        secret_id = foreign_hashes.parts_of(stored_hash or "").secret_id
        if secret_id is None:
            return b""
        secret = self._secrets.get(secret_id) or self._find_secret(secret_id)
        if secret:
            self._secrets[secret_id] = secret
        return secret

    def _check_evenly(
        self,
        password: str,
        stored_hash: str | None,
        secret: bytes | None,
        samples: Collection[str],
    ) -> PasswordVerdict:
        began = Cost.now()
        verdict = self._check(password, stored_hash, secret)
        kinds, times = {*samples, self.own_sample}, len({normalized(password), password})
        if verdict.matches or len(kinds) == times == 1:
            return verdict
        costs = [self._cost(sample) for sample in kinds]
        # Dearer ones were imported before that was refused: nobody else waits as long.
        most = foreign_hashes.MAX_SECONDS
        cpu, wall, _ = (times * min(max(one), most) for one in zip(*costs, strict=True))
        cpu -= times * self._time_in_lanes(stored_hash)
        while began.since().cpu < cpu or began.since().wall < wall:
            pbkdf2_hmac("sha256", b"", b"", FILLING_ROUNDS)
        return verdict

    def _time_in_lanes(self, stored_hash: str | None) -> float:
        """Return for how long checking this hash leaves the work to threads of its own, if at all.

        What they compute is no time of this thread, which would do as much once more.
        """
        if stored_hash is None:
            return 0.0
        cost = self._cost(foreign_hashes.sample_of(stored_hash))
        return max(0.0, min(cost.wall, cost.process) - cost.cpu)

    def _cost(self, sample: str) -> Cost:
        if sample not in self._costs:
            spent = []
            for _ in range(MEASURED_TIMES):
                began = Cost.now()
                with suppress(*UNREADABLE):
                    self._context.verify("any", foreign_hashes.parts_of(sample).hashed)
                spent.append(began.since())
            self._costs[sample] = Cost(*map(min, zip(*spent, strict=True)))
        return self._costs[sample]

    def _check(
        self, password: str, stored_hash: str | None, secret: bytes | None
    ) -> PasswordVerdict:
        if stored_hash is None:
            self._context.dummy_verify()
            return PasswordVerdict(matches=False)
        hashed, way, _ = foreign_hashes.parts_of(stored_hash)
        # Services whose hashes were imported may have taken a password as it was typed.
        spellings = {normalized(password), password}
        try:
            if secret is None:
                raise ValueError("its secret is missing")
            typed = [foreign_hashes.mixed(one, way, secret) for one in spellings]
            matches = any(self._context.verify(one, hashed) for one in typed)
        except UNREADABLE:
            # Not a valid hash, e.g. after a failed import: treated like no password.
            log.exception("a stored password hash cannot be read")
            self._context.dummy_verify()
            return PasswordVerdict(matches=False)
        is_outdated = matches and (way is not None or self._context.needs_update(hashed))
        return PasswordVerdict(
            matches, self._context.hash(normalized(password)) if is_outdated else None
        )


def normalized(password: str) -> str:
    """Return the same form for what looks the same: NFKC (NIST SP 800-63B-3 §5.1.1.2)."""
    return unicodedata.normalize("NFKC", password)


def is_guessable(password: str, names: Iterable[str] = ()) -> bool:
    """Return whether `password` is a common one, or one of `names`, whatever the case.

    `names` are the account's username and e-mail address, perhaps as typed, with space around them;
    the local part of an address counts, too.
    """
    folded = _folded(password)
    stripped = [name.strip() for name in names]
    own = {_folded(part) for name in stripped for part in (name, name.partition("@")[0])}
    return folded in own or folded in _common_passwords()


@cache
def _common_passwords() -> frozenset[str]:
    # Imported on first use: zxcvbn ranks all of its word lists on import, some 15 MB of memory.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    ranked = FREQUENCY_LISTS["passwords"]
    return frozenset(password for password in ranked if len(password) >= MIN_PASSWORD_LENGTH)


def _folded(text: str) -> str:
    return normalized(text).casefold()
