"""JWTs signed with the installation's own keys (RFC 7519; decision E4).

Invariant: only the keyring's newest key signs, and a retired one is trusted no longer than the
longest-lived token that it can have signed.
"""

import hmac
import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import jwt

from app.core import base64url
from app.core.keyring import Keyring
from app.core.tokens import digest

ALGORITHM = "HS256"
MAX_TOKEN_LIFETIME = timedelta(days=1)
MAX_TOKEN_LENGTH = 2048
REMEMBERED_TOKENS = 8192

_encode = json.JSONEncoder(separators=(",", ":")).encode
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

# Times are checked by the reader of the claims alone, against the application's clock.
_verifier = jwt.PyJWT({"verify_exp": False, "verify_iat": False, "verify_nbf": False})


class TokenForged(Exception):
    """The text is not a token signed with a key of ours that is still trusted."""


@dataclass(frozen=True, slots=True)
class _Genuine:
    key_id: str
    claims: Mapping[str, Any]


class SignedTokens:
    """Signs and verifies claims for one purpose.

    A page presents one token many times, and verifying its signature costs more than everything
    else in an access check. So genuine tokens are cached by their digests; the key's retirement,
    like whatever the claims say, is still checked every time.
    """

    def __init__(self, keyring: Keyring, purpose: str) -> None:
        self._keyring = keyring
        self._purpose = purpose
        self._genuine: OrderedDict[str, _Genuine] = OrderedDict()

    def sign(self, claims: dict[str, Any]) -> str:
        """Return a token that carries `claims`, in the compact form (RFC 7515 §3.1).

        Hand-written, since every login and refresh signs, and PyJWT encodes each header anew.
        """
        key = self._keyring.current()
        secret = self._keyring.derived(key, self._purpose)
        signed = f"{_header(key.key_id)}.{base64url.encoded(_encode(claims).encode())}"
        return f"{signed}.{base64url.encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"

    def verified(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a genuine token, which may have expired.

        Raises: TokenForged.
        """
        # No padding or whitespace: every spelling of a token would take its own place in the cache.
        if len(token) > MAX_TOKEN_LENGTH or not _TOKEN.fullmatch(token):
            raise TokenForged
        name = digest(token)
        genuine = self._genuine.get(name) or self._verify(token, name)
        key = self._keyring.find(genuine.key_id)
        if key is None or self._keyring.is_retired_for(key, MAX_TOKEN_LIFETIME):
            raise TokenForged
        return genuine.claims

    def _verify(self, token: str, name: str) -> _Genuine:
        try:
            key_id = str(jwt.get_unverified_header(token).get("kid"))
            key = self._keyring.find(key_id)
            if key is None:
                raise TokenForged
            secret = self._keyring.derived(key, self._purpose)
            claims = _verifier.decode(token, secret, algorithms=[ALGORITHM])
        except (jwt.PyJWTError, ValueError, TypeError):
            raise TokenForged from None
        self._genuine[name] = genuine = _Genuine(key_id, claims)
        if len(self._genuine) > REMEMBERED_TOKENS:
            self._genuine.popitem(last=False)
        return genuine


@cache
def _header(key_id: str) -> str:
    return base64url.encoded(_encode({"alg": ALGORITHM, "kid": key_id, "typ": "JWT"}).encode())
