"""All randomness, and the digests under which tokens are stored."""

import hashlib
import secrets
import string

TOKEN_BYTES = 32
PASSWORD_LENGTH = 24
# Characters that are easily confused (0/O, 1/l/I) are left out.
_LOWER = "abcdefghijkmnpqrstuvwxyz"
_UPPER = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_DIGITS = "23456789"
_SYMBOLS = "!#%+-=?@"


def random_token() -> str:
    """Return 256 random bits as 43 URL-safe characters."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def random_nonce() -> str:
    """Return 128 random bits as 22 URL-safe characters."""
    return secrets.token_urlsafe(16)


def random_bytes(count: int = TOKEN_BYTES) -> bytes:
    """Return `count` random bytes; by default 32, the size of every key."""
    return secrets.token_bytes(count)


def random_uuid() -> str:
    """Return a random UUID in its canonical text form (RFC 9562 §5.4).

    Hand-written, since every request needs one and Python's `uuid4` takes longer.
    """
    raw = bytearray(secrets.token_bytes(16))
    raw[6] = raw[6] & 0x0F | 0x40  # version 4
    raw[8] = raw[8] & 0x3F | 0x80  # the variant of that RFC
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def random_hex() -> str:
    """Return 128 random bits as 32 lower-case hexadecimal characters."""
    return secrets.token_hex(16)


def random_digits(count: int) -> str:
    """Return `count` random decimal digits."""
    return f"{secrets.randbelow(10**count):0{count}d}"


def random_alphanumerics(count: int) -> str:
    """Return `count` random characters from a-z and 0-9."""
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(count))


def random_fraction() -> float:
    """Return a random number in [0, 1), for jitter."""
    return secrets.randbits(53) / (1 << 53)


def generated_password() -> str:
    """Return a password with every character class, for an administrator to hand over."""
    alphabet = _LOWER + _UPPER + _DIGITS + _SYMBOLS
    required = [secrets.choice(group) for group in (_LOWER, _UPPER, _DIGITS, _SYMBOLS)]
    rest = [secrets.choice(alphabet) for _ in range(PASSWORD_LENGTH - len(required))]
    characters = required + rest
    secrets.SystemRandom().shuffle(characters)
    return "".join(characters)


def digest(token: str) -> str:
    """Return the SHA-256 of a random token as 64 hexadecimal characters.

    Only for tokens of 128 random bits or more; a short code needs a keyed hash.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
