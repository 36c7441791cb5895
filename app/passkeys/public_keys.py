"""The public keys accepted for passkeys: ES256 and RS256 (RFC 9052, RFC 8230)."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from fido2 import cbor
from fido2.cose import ES256, RS256, CoseKey

ALGORITHMS = (ES256.ALGORITHM, RS256.ALGORITHM)

# COSE key parameter labels (RFC 9052 §7, RFC 9053 §7.1, RFC 8230 §4).
KTY, ALG, CRV, X, Y, N, E = 1, 3, -1, -2, -3, -1, -2
EC2, RSA, P_256 = 2, 3, 1
P_256_BYTES = 32
# The sizes authenticators generate; longer keys would make verification slow.
RSA_BITS = range(2048, 4097)
MAX_EXPONENT_BYTES = 4


def encode(key: CoseKey) -> bytes | None:
    """Return the CBOR encoding to store of a key; None if the key is not acceptable.

    Only the parameters that make up the key are kept.
    """
    members = _ec_members(key) if key.get(ALG) == ES256.ALGORITHM else _rsa_members(key)
    if members is None or not _is_usable(CoseKey.parse(members)):
        return None
    return cbor.encode(members)


def has_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether `signature` is a stored key's signature of this message."""
    members: Mapping[int, Any] = cbor.decode(key)  # type: ignore[assignment]
    try:
        CoseKey.parse(members).verify(message, signature)
    except (InvalidSignature, ValueError):
        return False
    return True


def _ec_members(key: CoseKey) -> dict[int, Any] | None:
    x, y = key.get(X), key.get(Y)
    if (key.get(KTY), key.get(CRV)) != (EC2, P_256) or not _is_point(x, y):
        return None
    return {KTY: EC2, ALG: ES256.ALGORITHM, CRV: P_256, X: x, Y: y}


def _is_point(x: Any, y: Any) -> bool:
    # In a compressed point y is a boolean, which WebAuthn does not allow (§5.8.5).
    return all(isinstance(value, bytes) and len(value) == P_256_BYTES for value in (x, y))


def _rsa_members(key: CoseKey) -> dict[int, Any] | None:
    n, e = key.get(N), key.get(E)
    if (key.get(KTY), key.get(ALG)) != (RSA, RS256.ALGORITHM):
        return None
    if not isinstance(n, bytes) or not isinstance(e, bytes) or len(e) > MAX_EXPONENT_BYTES:
        return None
    if int.from_bytes(n, "big").bit_length() not in RSA_BITS:
        return None
    return {KTY: RSA, ALG: RS256.ALGORITHM, N: n, E: e}


def _is_usable(key: CoseKey) -> bool:
    """Return whether the parameters form a valid key: a point on the curve, a sound exponent."""
    try:
        with suppress(InvalidSignature):
            key.verify(b"", b"")
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True
