"""Validation of an ID token (OpenID Connect Core §3.1.3.7).

Invariant: a token's own header can only choose among the algorithms that its provider announced,
and the key always comes from the provider's key set or is the client's secret.
"""

import hmac
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.algorithms import HMACAlgorithm

from app.external_auth.drivers.driver import error_word, parse_json
from app.external_auth.errors import ProviderRejected

MAX_TOKEN_LENGTH = 64 * 1024
RECENT_SECONDS = 300

SYMMETRIC = {
    "HS256": HMACAlgorithm.SHA256,
    "HS384": HMACAlgorithm.SHA384,
    "HS512": HMACAlgorithm.SHA512,
}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ASYMMETRIC = (*_RSA, *_CURVES)
ALGORITHMS = (*ASYMMETRIC, *SYMMETRIC)
_TYPES = ("jwt", "application/jwt")


class _ClientSecret(HMACAlgorithm):
    """HMAC keyed with a client secret, whose length is up to the provider."""

    def check_key_length(self, _key: bytes) -> str | None:
        """Accept any length."""
        return None


def _make_verifier() -> jwt.PyJWS:
    verifier = jwt.PyJWS(ASYMMETRIC, {"enforce_minimum_key_length": True})
    for name, hash_function in SYMMETRIC.items():
        verifier.register_algorithm(name, _ClientSecret(hash_function))
    return verifier


_verifier = _make_verifier()


@dataclass(frozen=True)
class Header:
    """What a token says about its signature; `key_id` is None if it names no key."""

    algorithm: str
    key_id: str | None


def header(token: str, *, announced: Collection[str], supported: Collection[str]) -> Header:
    """Return the token's header, if its algorithm is both announced and supported.

    Raises: ProviderRejected.
    """
    if len(token) > MAX_TOKEN_LENGTH:
        raise ProviderRejected("the ID token is too long")
    try:
        found = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise ProviderRejected("the ID token is malformed") from None
    algorithm, kind = found.get("alg"), found.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in supported:
        raise ProviderRejected(f"the ID token's algorithm is unsupported: {error_word(algorithm)}")
    if algorithm not in announced:
        raise ProviderRejected(f"the ID token's algorithm was not announced: {algorithm}")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise ProviderRejected("the ID token is of another type")
    if any(name in found for name in ("crit", "cty", "enc")):
        raise ProviderRejected("the ID token's header asks for more than a signature")
    return Header(algorithm, found.get("kid"))


def fitting_keys(key_set: Sequence[Mapping[str, Any]], header: Header) -> list[jwt.PyJWK]:
    """Return the keys of the set that may have made this signature."""
    fitting = (key for key in key_set if _fits(key, header))
    return [usable for key in fitting if (usable := _usable(key, header.algorithm))]


def readable_keys(key_set: Sequence[Mapping[str, Any]]) -> int:
    """Return how many keys of the set are usable with any algorithm."""
    return sum(_usable(key, None) is not None for key in key_set)


def claims(
    token: str,
    header: Header,
    key: jwt.PyJWK | bytes,
    *,
    client_id: str,
    nonce: str | None,
    now: float,
) -> dict[str, Any]:
    """Return the claims of a token whose signature, audience, expiry and nonce are valid.

    `now` is in seconds since the epoch. The caller has to check the issuer.
    Raises: ProviderRejected.
    """
    try:
        found = parse_json(_verifier.decode(token, key, algorithms=[header.algorithm]))
    except (jwt.PyJWTError, ValueError, TypeError):
        raise ProviderRejected("the ID token's signature or content is not valid") from None
    if not isinstance(found, dict):
        raise ProviderRejected("the ID token has no claims")
    _check_audience(found, client_id)
    _number(found, "iat")
    if now >= _number(found, "exp"):
        raise ProviderRejected("the ID token has expired")
    said = found.get("nonce")
    if not nonce or not isinstance(said, str):
        raise ProviderRejected("the ID token has no nonce")
    if not hmac.compare_digest(said.encode("utf-8", "surrogatepass"), nonce.encode()):
        raise ProviderRejected("the ID token's nonce belongs to another sign-in")
    return found


def require_recent(claims: Mapping[str, Any], now: float) -> None:
    """Refuse a token of somebody who signed in at the provider a while ago, or in the future.

    Raises: ProviderRejected.
    """
    if abs(now - _number(claims, "auth_time")) > RECENT_SECONDS:
        raise ProviderRejected("the sign-in at the provider was not a recent one")


def _check_audience(found: Mapping[str, Any], client_id: str) -> None:
    """Refuse a token that is not ours; `azp` has to say so if it is meant for others as well."""
    audience = found.get("aud")
    everyone = audience if isinstance(audience, list) else [audience]
    if client_id not in everyone or found.get("azp", client_id) != client_id:
        raise ProviderRejected("the ID token is for somebody else")
    if "azp" not in found and any(other != client_id for other in everyone):
        raise ProviderRejected("the ID token is for others as well, and has no azp")


def _fits(key: Mapping[str, Any], header: Header) -> bool:
    """Return whether a key of the set is meant for such a signature (RFC 7517 §4)."""
    if header.algorithm in _CURVES:
        is_kind = key.get("kty") == "EC" and key.get("crv") == _CURVES[header.algorithm]
    else:
        is_kind = key.get("kty") == "RSA"
    operations = key.get("key_ops")
    return (
        is_kind
        and key.get("use", "sig") == "sig"
        and key.get("alg", header.algorithm) == header.algorithm
        and (operations is None or (isinstance(operations, list) and "verify" in operations))
        and (header.key_id is None or key.get("kid") == header.key_id)
    )


def _usable(key: Mapping[str, Any], algorithm: str | None) -> jwt.PyJWK | None:
    try:
        return jwt.PyJWK(dict(key), algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None


def _number(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or value == math.inf:
        raise ProviderRejected(f"the ID token's {name} is missing")
    return value
