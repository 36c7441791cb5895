"""Password hashes that other services made: which are accepted, and at what cost at most.

A hash is computed whenever somebody types a password for its account, so one that takes minutes
would let anybody keep the password threads busy; and every refused password costs as much as the
most expensive hash of any account.
"""

import hmac
import re
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from passlib.context import CryptContext
from passlib.hash import (
    argon2,
    bcrypt_sha256,
    django_bcrypt_sha256,
    django_pbkdf2_sha1,
    django_pbkdf2_sha256,
    ldap_salted_sha1,
    ldap_salted_sha256,
    ldap_salted_sha512,
    pbkdf2_sha1,
    pbkdf2_sha256,
    pbkdf2_sha512,
    scrypt,
    sha256_crypt,
    sha512_crypt,
)

from app.crypto import foreign_schemes as schemes
from app.crypto.foreign_spellings import decoded, encoded, spelt

MAX_LENGTH = 255  # of the column
MAX_SECONDS = 1.0  # for one check
MAX_MEMORY_KIB = 256 * 1024
MAX_LANES = 16
MIN_KEY_BYTES = 16  # a shorter one was cut off, and fits many a password
_BCRYPT = re.compile(r"\$2[abxy]?\$\d\d\$")
# Firebase's own interface answers in the alphabet of URLs, its command in the usual one.
_USUAL = str.maketrans("-_", "+/")
_DJANGO, _LDAP, _FIREBASE = "Django", "LDAP", "Firebase"

# Each scheme with whose it is, unless others use it as well.
_NAMES: Mapping[Any, str] = {
    schemes.TruncatingBcrypt: "bcrypt",
    scrypt: "scrypt",
    pbkdf2_sha1: "PBKDF2",
    pbkdf2_sha256: "PBKDF2",
    pbkdf2_sha512: "PBKDF2",
    schemes.CutSha256: "PBKDF2",
    schemes.CutSha512: "PBKDF2",
    sha256_crypt: "sha256-crypt",
    sha512_crypt: "sha512-crypt",
    bcrypt_sha256: "bcrypt_sha256",
    django_pbkdf2_sha256: _DJANGO,
    django_pbkdf2_sha1: _DJANGO,
    django_bcrypt_sha256: _DJANGO,
    schemes.Phpass: "WordPress",
    schemes.WordPressBcrypt: "WordPress",
    schemes.Drupal: "Drupal",
    ldap_salted_sha1: _LDAP,
    ldap_salted_sha256: _LDAP,
    ldap_salted_sha512: _LDAP,
    schemes.FirebaseScrypt: _FIREBASE,
}
SCHEMES = tuple(_NAMES)
NAMES: Mapping[str, str] = {
    "argon2": "Argon2",
    **{str(scheme.name): name for scheme, name in _NAMES.items()},
}
KNOWN = (
    "Argon2, bcrypt, scrypt, PBKDF2, bcrypt_sha256, sha256-crypt, sha512-crypt, and those of "
    "ASP.NET Identity, Django, Drupal, Firebase, Kratos, LDAP, Nextcloud, Werkzeug, WordPress"
)

_context = CryptContext(schemes=[argon2, *SCHEMES])


class Way(StrEnum):
    """How a secret that the other service kept apart goes into what it hashed."""

    HMAC = "hmac"
    APPENDED = "appended"
    SIGNER = "signer"


@dataclass(frozen=True)
class Pepper:
    """What another service mixed into every password, and how."""

    way: Way
    secret: bytes = field(repr=False)


SECRET_ID_BYTES = 6
_WITH_SECRET = re.compile(rf"({'|'.join(Way)}):([0-9a-f]+):")
_SECRET_LENGTH = len(f"{Way.APPENDED}::") + 2 * SECRET_ID_BYTES
# What joins salt and digest: those of LDAP and of phpass, whose fourth character is the cost.
_JOINED = re.compile(rf"(?:{_WITH_SECRET.pattern})?(?:\{{\w+\}}|\$[PHS]\$.)")


@dataclass(frozen=True)
class Foreign:
    """A hash that another service made, with the name of its kind, and the secret it needs."""

    kind: str
    text: str = field(repr=False)
    way: Way | None = None
    secret: bytes | None = field(default=None, repr=False)

    def stored(self, secret_id: str | None) -> str:
        """Return what is stored; what needs a secret names it."""
        return f"{self.way}:{secret_id}:{self.text}" if self.way else self.text


class Parts(NamedTuple):
    """A stored hash, and the way and the id of the secret it needs, if it needs one."""

    hashed: str
    way: Way | None = None
    secret_id: str | None = None


def parts_of(stored: str) -> Parts:
    """Return the parts of a stored hash."""
    found = _WITH_SECRET.match(stored)
    return Parts(stored[found.end() :], Way(found[1]), found[2]) if found else Parts(stored)


def mixed(password: str, way: Way | None, secret: bytes) -> str | bytes:
    """Return what is hashed for a password, by HMAC in the form that Flask-Security gives it."""
    if way is Way.HMAC:
        typed = unicodedata.normalize("NFKD", password).encode()
        return b64encode(hmac.digest(secret, typed, "sha512"))
    if way is Way.APPENDED:
        return password.encode() + secret
    return secret + password.encode() if way is Way.SIGNER else password


def _argon2_kib(hash_: Any) -> int:
    return int(hash_.memory_cost)


def _scrypt_kib(hash_: Any) -> int:
    # 128 bytes for each of 2^rounds times block_size.
    return int(2**hash_.rounds * hash_.block_size // 8)


def _bcrypt_seconds(hash_: Any) -> float:
    return float(2**hash_.rounds * 60e-6)


def _digest_seconds(hash_: Any) -> float:
    return float(getattr(hash_, "rounds", 0) * 0.6e-6)


def _phpass_seconds(hash_: Any) -> float:
    return float(2**hash_.rounds * 0.6e-6)


def _scrypt_seconds(hash_: Any) -> float:
    return float(_scrypt_kib(hash_) * hash_.parallelism * 2.5e-6)


MEMORY_KIB: Mapping[str, Callable[[Any], int]] = {
    "argon2": _argon2_kib,
    "scrypt": _scrypt_kib,
    "firebase_scrypt": _scrypt_kib,
}
# What one check takes on a usual machine, for the hashes whose cost can be chosen at will.
SECONDS: Mapping[str, Callable[[Any], float]] = {
    "argon2": lambda hash_: _argon2_kib(hash_) * hash_.rounds * 1e-6,
    "scrypt": _scrypt_seconds,
    "firebase_scrypt": _scrypt_seconds,
    "bcrypt": _bcrypt_seconds,
    "bcrypt_sha256": _bcrypt_seconds,
    "django_bcrypt_sha256": _bcrypt_seconds,
    "wordpress_bcrypt": _bcrypt_seconds,
    "phpass": _phpass_seconds,
    "drupal": _phpass_seconds,
}


def checked(typed: str, pepper: Pepper | None = None) -> Foreign:
    """Return a hash as it is stored, from another service's spelling.

    Raises: ValueError, whose text repeats nothing of the hash.
    """
    name, text = spelt(typed)
    scheme = _context.identify(text)
    if scheme is None or scheme == schemes.FirebaseScrypt.name:
        raise ValueError(f"is of no kind that can be verified; known are {KNOWN}")
    require_usable(scheme, text, MAX_LENGTH - _SECRET_LENGTH if pepper else MAX_LENGTH)
    kind = name or NAMES[scheme]
    return Foreign(kind, text, pepper.way, pepper.secret) if pepper else Foreign(kind, text)


def checked_firebase(
    typed: str, *, salt: str, salt_separator: str, signer_key: str, rounds: int, mem_cost: int
) -> Foreign:
    """Return a hash of Firebase, all in Base64, with the parameters of its project.

    Raises: ValueError, whose text repeats nothing of the hash.
    """
    try:
        texts = (salt, salt_separator, typed, signer_key)
        of_account, separator, hashed, secret = (decoded(one.translate(_USUAL)) for one in texts)
    except ValueError:
        raise ValueError("and the parameters of Firebase must be Base64") from None
    if len(secret) != schemes.SIGNER_KEY_BYTES:
        raise ValueError(f"needs a signer_key of {schemes.SIGNER_KEY_BYTES} bytes in Base64")
    settings = f"ln={mem_cost},r={rounds},p=1"
    salted = encoded(of_account + separator)
    text = f"{schemes.FirebaseScrypt.default_ident}{settings}${salted}${encoded(hashed)}"
    require_usable(schemes.FirebaseScrypt.name, text, MAX_LENGTH - _SECRET_LENGTH)
    return Foreign(_FIREBASE, text, Way.SIGNER, secret)


def require_usable(scheme: str, text: str, max_length: int) -> None:
    """Refuse a hash that is damaged, too long for its column, or costs too much.

    Raises: ValueError.
    """
    try:
        read: Any = _context.handler(scheme).from_string(text)
    except (ValueError, TypeError, AssertionError, OverflowError, NotImplementedError):
        raise ValueError(f"is no complete hash of the kind {scheme}") from None
    if len(read.checksum or b"") < MIN_KEY_BYTES:
        raise ValueError(f"is no complete hash of the kind {scheme}")
    if len(text) > max_length:
        raise ValueError(f"is longer than {max_length} characters ({scheme})")
    memory = MEMORY_KIB[scheme](read) if scheme in MEMORY_KIB else 0
    if memory > MAX_MEMORY_KIB or getattr(read, "parallelism", 1) > MAX_LANES:
        raise ValueError(f"costs too much: its memory or its number of lanes ({scheme})")
    require_bearable(SECONDS.get(scheme, _digest_seconds)(read), scheme)


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
    if found := _JOINED.match(hashed):
        return found[0]
    parts = 1 if _BCRYPT.search(hashed) else 2  # it joins salt and digest
    return hashed.rsplit("$", parts)[0] + "$"


def sample_of(hashed: str) -> str:
    """Return a hash of the same kind and cost that is nobody's, the same for all of that kind."""
    head = head_of(hashed)
    filler = "." if "bcrypt" in head or _BCRYPT.search(hashed) else "A"  # a valid end of its Base64
    return head + re.sub("[^=$]", filler, hashed[len(head) :])
