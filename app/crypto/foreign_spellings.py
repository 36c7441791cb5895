"""Password hashes as other services write them, put into passlib's spelling of the same."""

import re
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from passlib.utils.binary import ab64_encode, b64s_encode

DIGEST_BYTES = {"sha1": 20, "sha256": 32, "sha512": 64}
# Others have lost some.
KEY_BYTES = (16, 20, 24, 28, 32, 48, 64, 128)
SCRYPT_BYTES = 32
LONG_SCRYPT_BYTES = 64
ASP_NET_BYTES = 32
_ASP_NET = struct.Struct(">BIII")
_ASP_NET_DIGESTS = ("sha1", "sha256", "sha512")


class Spelling(NamedTuple):
    """How a service writes its hashes, and what makes passlib's spelling of one; see `spelt`."""

    name: str
    pattern: re.Pattern[str]
    rewritten: Callable[[re.Match[str]], str]


def pbkdf2(digest: str, rounds: int, salt: bytes, key: bytes) -> str:
    """Return passlib's spelling; a key may be longer than the digest, whose bytes come first.

    Raises: ValueError.
    """
    if len(key) not in KEY_BYTES:
        raise ValueError("cut off")
    size = DIGEST_BYTES[digest]
    name = "pbkdf2" if digest == "sha1" else f"pbkdf2-{digest}"
    name += "-cut" if len(key) < size else ""
    return f"${name}${rounds}${ab64_encode(salt).decode()}${ab64_encode(key[:size]).decode()}"


def scrypt(cost: int, found: Mapping[str, str], salt: bytes, key: bytes) -> str:
    """Return passlib's spelling, with the first half of a long key.

    Raises: ValueError.
    """
    if cost.bit_count() != 1 or len(key) not in (SCRYPT_BYTES, LONG_SCRYPT_BYTES):
        raise ValueError("no power of two, or cut off")
    settings = f"ln={cost.bit_length() - 1},r={int(found['r'])},p={int(found['p'])}"
    return f"$scrypt${settings}${encoded(salt)}${encoded(key[:SCRYPT_BYTES])}"


def encoded(data: bytes) -> str:
    """Return Base64 without padding."""
    return str(b64s_encode(data).decode())


def decoded(text: str) -> bytes:
    """Return what Base64 stands for, padded or not.

    Raises: ValueError.
    """
    return b64decode(text + "=" * (-len(text) % 4), validate=True)


def _whole(key: bytes, size: int) -> bytes:
    if len(key) != size:
        raise ValueError("cut off")
    return key


def _werkzeug_pbkdf2(found: Any) -> str:
    key = _whole(bytes.fromhex(found["key"]), DIGEST_BYTES[found["digest"]])
    return pbkdf2(found["digest"], int(found["rounds"]), found["salt"].encode(), key)


def _werkzeug_scrypt(found: Any) -> str:
    key = _whole(bytes.fromhex(found["key"]), LONG_SCRYPT_BYTES)
    return scrypt(int(found["n"]), found, found["salt"].encode(), key)


def _django_scrypt(found: Any) -> str:
    key = _whole(decoded(found["key"]), LONG_SCRYPT_BYTES)
    return scrypt(int(found["n"]), found, found["salt"].encode(), key)


def _kratos_pbkdf2(found: Any) -> str:
    key = decoded(found["key"])
    return pbkdf2(found["digest"], int(found["rounds"]), decoded(found["salt"]), key)


def _kratos_scrypt(found: Any) -> str:
    return scrypt(int(found["n"]), found, decoded(found["salt"]), decoded(found["key"]))


def _kratos_crypt(found: Any) -> str:
    return f"${'5' if found['digest'] == 'sha256' else '6'}${found['rest']}"


def _asp_net(found: Any) -> str:
    data = decoded(found[0])
    _, digest, rounds, salt_size = _ASP_NET.unpack_from(data)
    salt, key = data[_ASP_NET.size :][:salt_size], data[_ASP_NET.size + salt_size :]
    return pbkdf2(_ASP_NET_DIGESTS[digest], rounds, salt, _whole(key, ASP_NET_BYTES))


def _rest(found: Any) -> str:
    return str(found["rest"])


def _spelling(name: str, pattern: str, rewritten: Callable[[Any], str]) -> Spelling:
    return Spelling(name, re.compile(pattern), rewritten)


_DIGEST = r"(?P<digest>sha1|sha256|sha512)"
_COSTS = r"(?P<n>\d+):(?P<r>\d+):(?P<p>\d+)"
_SALT_HEX = r"\$(?P<salt>[^$]+)\$(?P<key>[0-9a-f]+)"
_SALT_BASE64 = r"\$(?P<salt>[A-Za-z0-9+/]+=*)\$(?P<key>[A-Za-z0-9+/]+=*)"
SPELLINGS = (
    _spelling("Werkzeug", rf"pbkdf2:{_DIGEST}:(?P<rounds>\d+){_SALT_HEX}", _werkzeug_pbkdf2),
    _spelling("Werkzeug", rf"scrypt:{_COSTS}{_SALT_HEX}", _werkzeug_scrypt),
    _spelling(
        "Django",
        r"scrypt\$(?P<n>\d+)\$(?P<salt>[^$]+)\$(?P<r>\d+)\$(?P<p>\d+)\$(?P<key>[A-Za-z0-9+/]+=*)",
        _django_scrypt,
    ),
    _spelling("Django", r"argon2(?P<rest>\$argon2.*)", _rest),
    _spelling("Django", r"bcrypt\$(?P<rest>\$2.*)", _rest),
    _spelling(
        "Kratos", rf"\$pbkdf2-{_DIGEST}\$i=(?P<rounds>\d+),l=\d+{_SALT_BASE64}", _kratos_pbkdf2
    ),
    # passlib writes the logarithm of the cost, which is 31 at most.
    _spelling(
        "Kratos",
        rf"\$scrypt\$ln=(?P<n>3[2-9]|[4-9]\d|\d{{3,}}),r=(?P<r>\d+),p=(?P<p>\d+){_SALT_BASE64}",
        _kratos_scrypt,
    ),
    _spelling("Kratos", r"\$(?P<digest>sha256|sha512)-crypt\$(?P<rest>.+)", _kratos_crypt),
    _spelling("Nextcloud", r"(1\|(?=\$2)|[23]\|(?=\$argon2))(?P<rest>.+)", _rest),
    _spelling("LDAP", r"(?i:\{CRYPT\})(?P<rest>\$(2[abxy]?|5|6)\$.+)", _rest),
    _spelling("ASP.NET Identity", r"AQAAAA[A-Za-z0-9+/]{40,}=*", _asp_net),
)


def spelt(typed: str) -> tuple[str | None, str]:
    """Return whose spelling this is and passlib's for it; None and the same if none of these.

    Raises: ValueError, whose text repeats nothing of the hash.
    """
    for name, pattern, rewritten in SPELLINGS:
        if found := pattern.fullmatch(typed):
            try:
                return name, rewritten(found)
            except (ValueError, IndexError, struct.error):
                raise ValueError(f"is no complete hash of {name}") from None
    return None, typed
