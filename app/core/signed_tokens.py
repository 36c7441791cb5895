"""JWTs signed with the installation's own keys (RFC 7519).

Invariant: only the keyring's newest key signs, and a retired one is trusted no longer than the
longest-lived token that it can have signed.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import jwt
from jwt.types import Options

from app.core.keyring import Keyring

ALGORITHM = "HS256"
MAX_TOKEN_LIFETIME = timedelta(days=1)
MAX_TOKEN_LENGTH = 2048

# PyJWT would skip padding and whitespace in a token.
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Times are checked by the reader of the claims alone, against the application's clock.
_UNTIMED: Options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}


class TokenForged(Exception):
    """The text is not a token signed with a key of ours that is still trusted."""


class SignedTokens:
    """Signs and verifies claims for one purpose."""

    def __init__(self, keyring: Keyring, purpose: str) -> None:
        self._keyring = keyring
        self._purpose = purpose

    def sign(self, claims: dict[str, Any]) -> str:
        """Return a token that carries `claims`."""
        key = self._keyring.current()
        secret = self._keyring.derived(key, self._purpose)
        return jwt.encode(claims, secret, ALGORITHM, headers={"kid": key.key_id})

    def verified(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a genuine token, which may have expired.

        Raises: TokenForged.
        """
        if len(token) > MAX_TOKEN_LENGTH or not _TOKEN.fullmatch(token):
            raise TokenForged
        try:
            key = self._keyring.find(str(jwt.get_unverified_header(token).get("kid")))
            if key is None or self._keyring.is_retired_for(key, MAX_TOKEN_LIFETIME):
                raise TokenForged
            secret = self._keyring.derived(key, self._purpose)
            claims: Mapping[str, Any] = jwt.decode(
                token, secret, algorithms=[ALGORITHM], options=_UNTIMED
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise TokenForged from None
        return claims
